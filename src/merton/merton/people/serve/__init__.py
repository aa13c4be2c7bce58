"""The pages of a study, served to raters."""

__all__: list[str] = []
