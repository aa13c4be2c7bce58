"""The features of EfficientNet-Lite0 that the lite metrics look at."""

STAGES = (0, 2, 4, 10, 15)
"""Blocks after which features are taken: the last of each resolution."""
CHANNELS = (16, 24, 40, 112, 320)
"""Features of a place at each of the stages."""
GRID = (3, 5)
"""Places for which features are kept, rows and columns."""
