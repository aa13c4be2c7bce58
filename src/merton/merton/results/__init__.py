"""The durable record of trials and foreign scores, and its ways in and out."""

__all__ = [
    "comparison",
    "database",
    "export",
    "matrix",
    "merge",
    "records",
    "schema",
    "statistics",
    "store",
    "tables",
    "text",
    "trial_files",
]
