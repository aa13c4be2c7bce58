"""What all nodes share: lifecycle, messages, names, waiting."""

__all__ = ["conversions", "launching", "names", "newest_messages", "runtime", "service_caller", "waits"]
