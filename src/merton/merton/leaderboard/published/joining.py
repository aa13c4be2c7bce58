"""The taxonomy of a benchmark that joins: a file for the host, made of its application."""

from __future__ import annotations

from merton.config import dumps, loads
from merton.errors import InputError
from merton.leaderboard.published.taxonomy import BASE, SHIPPED, Taxonomy, load_taxonomy
from merton.leaderboard.submissions.application import BenchmarkApplication
from merton.leaderboard.submissions.applications import Received


def taxonomy_entry(found: Received) -> str:
    """A taxonomy that extends the shipped one by a benchmark, YAML for `merton leaderboard arena --taxonomy`.

    Raises:
        InputError: the application is no benchmark; or its name is taken, or its task, a metric or a dimension is none
            of the shipped taxonomy, with the choices.
    """
    content = found.content
    if not isinstance(content, BenchmarkApplication):
        raise InputError(f"{found.id} is a model; a benchmark has a taxonomy")
    shipped = load_taxonomy()
    tasks = [task.name for task in shipped.tasks]
    if content.task not in tasks:
        raise InputError(f"{found.id}: unknown task {content.task!r}; choose from: {', '.join(tasks)}")
    benchmark = {
        "name": content.name,
        "metrics": [*content.metrics],
        "dimensions": [*content.dimensions],
        "source": content.link,
    }
    text = dumps({"extends": SHIPPED, "tasks": [{"name": content.task, "benchmarks": [benchmark]}]})
    loads(text, Taxonomy, found.id, {BASE: shipped})
    return text
