"""The `merton` command."""

__all__ = ["boards", "columns", "console", "doctor", "leaderboard", "main", "models", "recordings", "tree"]
