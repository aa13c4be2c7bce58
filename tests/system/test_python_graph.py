"""The snippet of docs/use/python.md that runs an experiment in a graph of nodes prints what the page shows."""

from __future__ import annotations

from pathlib import Path

from python_page import IN_GRAPH, snippets


def test_an_experiment_in_a_graph_is_one_call(tmp_path: Path) -> None:
    snippet = next(one for one in snippets() if one.heading == IN_GRAPH)
    ended = snippet.run(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == snippet.output
