"""Image quality for robots: metrics and opinions of a dataset put together, trained, compared and used as a gate."""

__all__ = [
    "benchmark",
    "cross",
    "demo",
    "demo_page",
    "folds",
    "gate",
    "gate_groups",
    "gate_page",
    "gate_run",
    "gate_study",
    "gate_table",
    "judged",
    "metric_files",
    "metric_floors",
    "metric_page",
    "metric_table",
    "published_iqa",
    "results",
    "trial_values",
    "values",
]
