"""The operator's screen as a local web page: images, arm, a stop button, and verdicts."""

__all__ = ["buttons", "hub", "motion", "pictures", "scene", "server", "timeline"]
