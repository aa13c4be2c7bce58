"""The gate: the checks of every chunk before anything moves, and the stop that ends every motion."""

__all__ = [
    "capsules",
    "carrying",
    "collision",
    "contact",
    "image_quality",
    "latch",
    "ledger",
    "peaks",
    "permit",
    "planner",
    "safety",
    "stop",
]
