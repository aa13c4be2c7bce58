"""Studies of a run: the report, floors of chance, pairs, losses by part, variances, power, thresholds, the models."""

__all__ = [
    "attribution",
    "dataset",
    "dataset_page",
    "execution_page",
    "execution_study",
    "gate",
    "gate_files",
    "opinion",
    "opinion_tables",
    "outputs",
    "power",
    "published_iqa",
    "report",
    "risk",
    "sequential",
    "thresholds",
    "values",
    "variance",
]
