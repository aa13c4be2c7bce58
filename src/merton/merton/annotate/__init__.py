"""Models x dataset x tasks to answers, actions and scores, all cached; see `merton.annotate.run`."""

__all__ = ["cache", "cases", "dataset", "engines", "identity", "opinions", "ray_engine", "run", "tables", "views"]
