"""The durable record of trials and foreign scores, and its ways in and out."""

__all__ = [
    "checking",
    "comparison",
    "csv_writer",
    "database",
    "decisions",
    "export",
    "losses",
    "matrix",
    "matrix_table",
    "merge",
    "metrics",
    "parquet",
    "peers",
    "records",
    "schema",
    "sheets",
    "store",
    "tables",
    "text",
    "trial_files",
]
