"""The operator's screen as a local web page: images, arm, a stop button, and verdicts; recordings for viewers."""

__all__ = [
    "buttons",
    "foxglove",
    "hub",
    "motion",
    "pictures",
    "rerun_export",
    "scene",
    "server",
    "timeline",
]
