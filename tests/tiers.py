"""What a test needs: markers set by its folder, its fixtures and its recorded time, and a guard that they are true.

`make quick` runs the tests that have none of them. No test is marked by hand.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
MARKERS = {
    "graph": "nodes over ROS 2, which may draw: folders nodes, system, neighbours",
    "browser": "Chromium: the fixture `browser`",
    "render": "pictures drawn by the simulator: the fixtures `cameras` and `renders`",
    "slow": "more than SLOW_S in tests/times.json, by itself or by a fixture that it shares",
}
GRAPH_FOLDERS = ("nodes", "system", "neighbours")
FIXTURES = {"browser": "browser", "cameras": "render", "renders": "render"}
SLOW_S = 0.3
"""A function of tests with all its cases, or a shared fixture, that takes longer is slow [s]."""
LONG_S = 60.0
"""A file whose tests take longer is done by several workers, as far as its tests share nothing [s]."""
WIDE = ("module", "package", "session")
UNKNOWN_S = 0.1
"""Taken for the time of a function of tests that is not recorded [s]: it is new, or short."""


@cache
def times() -> dict[str, float]:
    """Recorded seconds of each longer test function and of each longer shared fixture; by tools/test/suite_times.py."""
    return dict(json.loads((TESTS / "times.json").read_text(encoding="utf-8")))


def plain_id(test: str) -> str:
    """The id of a test without the group that xdist writes behind it: `tests/unit/test_x.py::test_y[1@2]`."""
    return re.sub(r"@[^\[\]@]*$", "", test)


def function_of(test: str) -> str:
    """The id of a test without the values of its parameters: `tests/unit/test_x.py::test_y`."""
    return plain_id(test).partition("[")[0]


def shared_fixtures(item: pytest.Item) -> Iterator[str]:
    """The fixtures of a test that are made once for several tests: `tests/unit/test_x.py::name`."""
    info = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        if definitions[-1].scope in WIDE:
            yield f"{definitions[-1].baseid}::{definitions[-1].argname}"


def markers_of(item: pytest.Item) -> set[str]:
    """The markers of a test, of MARKERS."""
    found = {FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES}
    if not set(item.path.relative_to(TESTS).parts).isdisjoint(GRAPH_FOLDERS):
        found.add("graph")
    if any(times().get(name, 0.0) > SLOW_S for name in (function_of(item.nodeid), *shared_fixtures(item))):
        found.add("slow")
    return found


def kind_of(item: pytest.Item) -> str:
    """The markers of a test as a text, `quick` without any."""
    return "+".join(name for name in MARKERS if item.get_closest_marker(name)) or "quick"


@cache
def seconds_of(file: str) -> float:
    """The recorded time of all tests and shared fixtures of a file [s]: `tests/unit/test_x.py`."""
    return sum(seconds for name, seconds in times().items() if name.startswith(f"{file}::"))


def group_of(item: pytest.Item) -> str:
    """The tests that one worker does one after the other: those of a file, which share fixtures, and all neighbours.

    Of a file that takes longer than `LONG_S`, a function of tests that shares no fixture of the file is by itself: one
    worker alone would be at such a file long after the others have done all else.
    """
    folder = item.path.relative_to(TESTS).parts[0]
    if folder == "neighbours":  # each of them fills both cores
        return folder
    file, _, function = function_of(item.nodeid).partition("::")
    shares = "::" in function or any(name.startswith(f"{file}::") for name in shared_fixtures(item))
    return item.path.name if shares or seconds_of(file) <= LONG_S else f"{item.path.name}-{function}"


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests by their groups, those that take longest first: so all workers are busy to the end.

    Tests of graphs wait half of their time, the others compute. Both kinds are mixed in the proportion of their times,
    so that neither is left over: together they keep the cores busy.
    """
    grouped = [(group_of(item), item) for item in items]
    parts: dict[str, dict[str, float]] = {}
    waits: dict[str, bool] = {}
    for group, item in grouped:
        waits[group] = item.get_closest_marker("graph") is not None
        part = parts.setdefault(group, {})
        part[function_of(item.nodeid)] = times().get(function_of(item.nodeid), UNKNOWN_S)
        part.update({name: times().get(name, 0.0) for name in shared_fixtures(item)})
    seconds = {group: sum(part.values()) for group, part in parts.items()}
    begins: dict[str, float] = {}  # share of the time of its kind that comes before a group
    for kind in (True, False):
        groups = sorted((group for group in parts if waits[group] is kind), key=lambda group: (-seconds[group], group))
        whole, before = sum(seconds[group] for group in groups), 0.0
        for group in groups:
            begins[group] = before / whole
            before += seconds[group]
    grouped.sort(key=lambda pair: (begins[pair[0]], not waits[pair[0]], pair[0]))
    return [item for _, item in grouped]


class Guard:
    """Sees that a test without the marker draws no picture and starts no node and no browser.

    Nor may a fixture that it shares, even if another test was the first to ask for it.
    """

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}
        self._seen_in: dict[str, dict[str, str]] = {}
        """Shared fixture to what was seen while it was made."""
        self._drawing: type | None = None

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event == "subprocess.Popen":
            program = " ".join(map(str, [arguments[0], *arguments[1][:3]]))
            if "merton_nodes" in program:
                self.seen["graph"] = f"starts {program}"
            elif "chrom" in program:
                self.seen["browser"] = f"starts {program}"

    def _watch_drawing(self) -> None:
        """Hear of drawing contexts, once the module of them is loaded: it is, with the first one."""
        module = sys.modules.get("mujoco.egl") or sys.modules.get("mujoco.osmesa")
        if self._drawing is not None or module is None:
            return
        self._drawing = module.GLContext
        made = self._drawing.__init__

        def init(context: Any, *arguments: Any, **named: Any) -> None:
            self.seen["render"] = "makes a drawing context"
            made(context, *arguments, **named)

        self._drawing.__init__ = init  # type: ignore[misc]

    @contextmanager
    def _watching(self) -> Iterator[None]:
        self._watch_drawing()
        draws = self._drawing is not None
        yield
        self._watch_drawing()
        if self._drawing is not None and not draws:
            self.seen["render"] = "makes the first drawing context"

    @contextmanager
    def over_fixture(self, fixture: str) -> Iterator[None]:
        """While a shared fixture is made, named as by `shared_fixtures`."""
        before, self.seen = self.seen, {}
        with self._watching():
            yield
        self._seen_in[fixture] = self.seen
        self.seen = before | self.seen

    @contextmanager
    def over(self, item: pytest.Item) -> Iterator[None]:
        """Fails a test that does what it is not marked for."""
        self.seen = {}
        with self._watching():
            yield
        deeds = dict(self.seen)
        for fixture in shared_fixtures(item):
            deeds |= self._seen_in.get(fixture, {})
        for name, deed in deeds.items():
            if not item.get_closest_marker(name) and not item.get_closest_marker("graph"):  # nodes draw, too
                pytest.fail(f"{item.nodeid} {deed}, and is not marked `{name}`: {MARKERS[name]}", pytrace=False)
