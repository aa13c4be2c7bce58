"""Studies of a run: the report, floors of chance, pairs of agents, losses by part, variances, power, the models."""

__all__ = ["attribution", "gate", "gate_files", "power", "report", "sequential", "values", "variance"]
