"""Studies of a run: the report, floors of chance, pairs, losses by part, variances, power, thresholds, the models."""

__all__ = [
    "attribution",
    "gate",
    "gate_files",
    "opinion",
    "outputs",
    "power",
    "report",
    "sequential",
    "thresholds",
    "values",
    "variance",
]
