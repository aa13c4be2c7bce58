"""The protocols: tasks, episodes, trials, labels, likert, pairs, quality."""

__all__: list[str] = []
