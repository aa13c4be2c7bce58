"""Studies of a run: the report, chance floors, pairs of agents, variances and power, and the study of models."""

__all__ = ["power", "report", "values", "variance"]
