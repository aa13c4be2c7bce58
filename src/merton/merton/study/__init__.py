"""Studies of a run: the report, chance floors, and the study of models."""

__all__ = ["report"]
