"""Parts common to all nodes: lifecycle, messages, names, waits."""

__all__ = ["conversions", "launching", "names", "newest_messages", "runtime", "service_caller", "waits"]
