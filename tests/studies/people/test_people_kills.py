"""A server of a study that is killed loses no answer that it has acknowledged, and has none of them twice."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from merton_studies.people.serve import run
from merton_studies.people.study import open_study


@pytest.fixture
def bench() -> ModuleType:
    """The measurement of `make bench`, which here is small."""
    return import_module("people_bench")


def forked(file: Path, port: int) -> int:
    """A server in a copy of this process, which has imported everything; its id, when it listens."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            tokens = file.parent / "links" / "tokens.yaml"
            run(open_study(file), port=port, tokens=tokens, say=lambda text: os.write(send, b"+") and None)
        finally:
            os._exit(1)
    os.close(send)
    assert os.read(receive, 1) == b"+"
    os.close(receive)
    return child


def test_kills_lose_and_double_nothing(bench: ModuleType, tmp_path: Path) -> None:
    """50 raters, 10,000 answers and 20 kills: tools/bench/people_bench.py."""
    file = bench.make_study(tmp_path / "study", raters=5, items=8)
    open_study(file).close()  # imports, and prepares the pictures, once for all servers
    done = bench.Bench(file, forked, kills=2, pause_s=0.0).run()
    assert (done["answers"], done["acknowledged"], done["kills"]) == (40, 40, 2)
    assert (done["lost"], done["doubled"]) == (0, 0)
    assert done["sent_twice"] > 0
