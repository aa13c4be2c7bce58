"""The `merton` command."""

__all__ = ["boards", "columns", "console", "distort", "doctor", "leaderboard", "main", "models", "recordings", "tree"]
