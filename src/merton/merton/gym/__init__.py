"""Gymnasium environments with distorted observations, and a recorder of their episodes."""

__all__: list[str] = []
