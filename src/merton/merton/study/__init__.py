"""Studies of a run: the report, floors of chance, pairs of agents, losses by part, variances, power, the models."""

__all__ = ["attribution", "power", "report", "values", "variance"]
