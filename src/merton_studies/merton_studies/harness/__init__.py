"""Pipelines that run a model on a benchmark and score it: composed or written, checked, sandboxed (A2Eval, 3.2)."""

__all__ = [
    "answerers",
    "answers",
    "batches",
    "costs",
    "demo",
    "evaluation",
    "fidelity",
    "log_files",
    "logs",
    "measures",
    "models",
    "own_fidelity",
    "own_scorers",
    "pipeline",
    "reference",
    "running",
    "sandbox",
    "scores",
    "validation",
    "writing",
]
