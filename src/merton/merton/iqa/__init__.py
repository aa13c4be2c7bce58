"""Image quality for robots: metrics and opinions of a dataset put together, trained, compared and used as a gate."""

__all__ = ["gate", "gate_page", "gate_run", "gate_study", "gate_table", "trial_values", "values"]
