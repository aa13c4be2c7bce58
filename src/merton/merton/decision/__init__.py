"""Decision: policies that turn images and an instruction into actions, and the score of their actions."""

__all__ = ["models", "score", "spread"]
