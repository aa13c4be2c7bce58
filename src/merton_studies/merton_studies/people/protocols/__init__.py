"""The protocols: tasks, episodes, trials, labels, likert, pairs, quality."""

from merton_studies.people.protocols.catalogue import protocol_named

__all__ = [
    "episodes",
    "labels",
    "likert",
    "pairs",
    "protocol_named",
    "quality",
    "tasks",
    "tasks_chain",
    "tasks_export",
    "trials",
]
