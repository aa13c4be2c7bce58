"""Pipelines that run a model on a benchmark and score it: composed or written, checked, sandboxed (A2Eval, 3.2)."""

__all__ = [
    "answerers",
    "answers",
    "demo",
    "evaluation",
    "fidelity",
    "measures",
    "models",
    "pipeline",
    "reference",
    "running",
    "sandbox",
    "scores",
    "validation",
    "writing",
]
