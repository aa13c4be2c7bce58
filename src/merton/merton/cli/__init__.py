"""The `merton` command."""

__all__ = ["boards", "console", "doctor", "leaderboard", "main", "models", "recordings", "tree"]
