"""A proxy between a harness and a policy server, which distorts the pictures and keeps the record of the episodes."""

__all__ = ["command", "protocols"]
