"""Parts common to all nodes: lifecycle, messages, names, waits."""

__all__ = [
    "conversions",
    "declared_cell",
    "entities",
    "executor",
    "launching",
    "marks",
    "names",
    "newest_messages",
    "polled",
    "runtime",
    "service_caller",
    "trial_messages",
    "uniqueness",
    "waits",
]
