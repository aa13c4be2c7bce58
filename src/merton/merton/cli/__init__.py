"""The `merton` command."""

__all__ = ["console", "doctor", "leaderboard", "main", "models", "recordings", "tree"]
