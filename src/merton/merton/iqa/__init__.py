"""Image quality for robots: metrics and opinions of a dataset put together, trained, compared and used as a gate."""

__all__ = ["trial_values", "values"]
