"""Words, pictures and templates that the report, the site and the server share."""

__all__ = ["cards", "environment", "svg", "webp", "words"]
