"""Merton measures how well embodied AI can use what it sees."""

__version__ = "0.1.0"
