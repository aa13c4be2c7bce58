"""A run in Weights & Biases, MLflow or TensorBoard: its curves, tables, settings and page, by their own clients."""

__all__ = ["content", "targets"]
