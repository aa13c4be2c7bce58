"""The program that drives a pipeline's programs inside the sandbox; it is copied there, and no other imports it."""

__all__: list[str] = []
