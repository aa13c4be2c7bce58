"""Studies of a run: the report, floors of chance, pairs, losses by part, variances, power, thresholds, the models."""

__all__ = [
    "attribution",
    "beside",
    "execution",
    "execution_page",
    "execution_study",
    "figures",
    "gate",
    "gate_files",
    "models",
    "outputs",
    "power",
    "report",
    "rerun_sample",
    "sections",
    "thresholds",
    "values",
    "variance",
]
