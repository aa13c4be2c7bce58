"""Many benchmarks made into one small, balanced one: pools, dimensions, assignment, sampling (A2Eval, section 3.1)."""

__all__ = [
    "agents",
    "assignment",
    "benchmark",
    "budget",
    "card",
    "cell",
    "computed",
    "curated",
    "embedding",
    "importing",
    "induction",
    "llm",
    "page",
    "pool",
    "published",
    "question",
    "roles",
    "sampling",
    "taxonomy",
]
