"""Cognition: VLMs that answer questions about images, and the score of their answers."""

__all__ = ["models", "score", "text", "words"]
