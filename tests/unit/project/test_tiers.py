"""Markers of tests, their order, the line that repeats a failure, and the tests that a change reaches."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import affected_tests
import pytest
from affected_tests import ROOT, Sources, affected

import repetition
import tiers
from tiers import MARKERS, SLOW_S, TESTS, Guard, longest_first, markers_of, plain_id

SHORT, LONG = "tests/unit/test_a.py::test_short", "tests/unit/test_a.py::test_long"


def item(test: str, *fixtures: str, shared: dict[str, str] | None = None, markers: tuple[str, ...] = ()) -> Any:
    """What pytest knows of a test: its id, fixtures, those that are shared with their folder or file, and markers."""
    definitions = {
        name: [SimpleNamespace(scope="module", baseid=base, argname=name)] for name, base in (shared or {}).items()
    }
    return SimpleNamespace(
        nodeid=test,
        path=TESTS.parent / test.partition("::")[0],
        fixturenames=[*fixtures, *definitions],
        _fixtureinfo=SimpleNamespace(name2fixturedefs=definitions),
        get_closest_marker=lambda name: name if name in markers else None,
    )


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of times in place of tests/times.json."""
    times = {LONG: 2 * SLOW_S, SHORT: SLOW_S / 2, "tests/unit/test_a.py::run": 3 * SLOW_S, "tests/unit::cell": 0.1}
    monkeypatch.setattr(tiers, "times", lambda: times)
    monkeypatch.setattr(tiers, "seconds_of", tiers.seconds_of.__wrapped__)  # which keeps the sums of the real record


@pytest.mark.parametrize(
    ("test", "markers"),
    [
        (item(SHORT), set()),
        (item(f"{LONG}[1]@test_a.py"), {"slow"}),
        (item(SHORT, shared={"run": "tests/unit/test_a.py"}), {"slow"}),
        (item(SHORT, shared={"cell": "tests/unit"}), set()),
        (item(SHORT, "cameras"), {"render"}),
        (item(SHORT, "renders"), {"render"}),
        (item("tests/nodes/test_b.py::test_one", "ros"), {"graph"}),
        (item("tests/neighbours/test_c.py::test_one"), {"graph"}),
        (item("tests/system/test_d.py::test_one", "browser"), {"graph", "browser"}),
    ],
    ids=lambda value: value.nodeid.rpartition("::")[2] if hasattr(value, "nodeid") else None,
)
@pytest.mark.usefixtures("recorded")
def test_markers_come_from_folder_fixtures_and_recorded_time(test: Any, markers: set[str]) -> None:
    assert markers_of(test) == markers


def test_no_test_is_marked_by_hand() -> None:
    by_hand = re.compile(rf"mark\.({'|'.join(MARKERS)})\b")
    assert [file.name for file in TESTS.rglob("test_*.py") if by_hand.search(file.read_text(encoding="utf-8"))] == []


def test_names_of_files_are_unique() -> None:
    """pytest imports a file of tests, and a helper, by its bare name."""
    names = [file.name for file in TESTS.rglob("*.py") if file.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))


def test_every_recorded_time_is_of_a_test_or_fixture_that_is_there() -> None:
    """`make test-times` renews the record."""
    for name in tiers.times():
        place, _, function = name.partition("::")
        path = ROOT / place
        files = path.glob("conftest.py") if path.is_dir() else [path]
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        there = f"def {function.rpartition('::')[2]}(" in text
        assert there, f"{name} has another name or is gone: say so in tests/times.json, or renew it"


@pytest.mark.parametrize(
    ("event", "arguments", "marker"),
    [
        ("subprocess.Popen", ("chromium", ["chromium", "--headless"], None, None), "browser"),
        ("subprocess.Popen", ("python3", ["python3", "-m", "merton_nodes.arm.arm_node"], None, None), "graph"),
    ],
)
def test_the_guard_fails_a_test_that_is_not_marked_for_its_deed(event: str, arguments: Any, marker: str) -> None:
    guard = Guard()
    with pytest.raises(pytest.fail.Exception, match=f"not marked `{marker}`"), guard.over(item(SHORT)):
        guard.hear(event, arguments)
    with guard.over(item(SHORT, markers=(marker,))):
        guard.hear(event, arguments)
    with guard.over(item(SHORT)):
        guard.hear("subprocess.Popen", ("true", ["true"], None, None))


def test_the_guard_fails_every_test_that_shares_a_fixture_with_a_deed() -> None:
    """Also those that come after the test for which the fixture was made, which may be marked."""
    guard = Guard()
    with guard.over(item(SHORT, markers=("browser",))), guard.over_fixture("tests/unit/test_x.py::page"):
        guard.hear("subprocess.Popen", ("chromium", ["chromium"], None, None))
    with guard.over(item(SHORT)):
        pass
    user = item(SHORT, shared={"page": "tests/unit/test_x.py"})
    with pytest.raises(pytest.fail.Exception, match="not marked `browser`"), guard.over(user):
        pass


def test_the_guard_sees_the_first_drawing_context_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made by an import that is no statement, of which Python tells no audit hook."""
    with monkeypatch.context() as patch:
        for name in ("mujoco.egl", "mujoco.osmesa"):
            patch.delitem(sys.modules, name, raising=False)
        with pytest.raises(pytest.fail.Exception, match="not marked `render`"), Guard().over(item(SHORT)):
            patch.setitem(sys.modules, "mujoco.egl", SimpleNamespace(GLContext=type("GLContext", (), {})))


@pytest.mark.usefixtures("renders")
def test_the_guard_sees_a_drawing_context() -> None:
    from merton.simulation.cameras import SceneCameras

    guard = Guard()
    with pytest.raises(pytest.fail.Exception, match="not marked `render`"), guard.over(item(SHORT)):
        SceneCameras().close()


def test_a_long_file_is_done_by_several_workers_but_for_what_its_tests_share(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "tests/unit/test_a.py"
    tests = [
        item(f"{file}::test_alone[1]"),
        item(f"{file}::test_alone[2]"),
        item(f"{file}::test_other", shared={"cell": "tests/unit"}),
        item(f"{file}::test_first", shared={"run": file}),
        item(f"{file}::test_second", shared={"run": file}),
        item(f"{file}::TestClass::test_third"),
    ]
    monkeypatch.setattr(tiers, "seconds_of", tiers.seconds_of.__wrapped__)
    for seconds, alone, other in (
        (1.1, "test_a.py-test_alone", "test_a.py-test_other"),
        (0.9, "test_a.py", "test_a.py"),
    ):
        monkeypatch.setattr(tiers, "times", lambda seconds=seconds: {f"{file}::test_alone": seconds * tiers.LONG_S})
        assert [tiers.group_of(test) for test in tests] == [alone, alone, other, *["test_a.py"] * 3]
    assert tiers.function_of(f"{file}::test_alone[1]@test_a.py-test_alone") == f"{file}::test_alone"


@pytest.mark.usefixtures("recorded")
def test_the_group_that_takes_longest_comes_first_and_stays_together() -> None:
    other = [item(f"tests/unit/test_z.py::test_{number}") for number in range(3)]
    mixed = [other[0], item(SHORT), other[1], item(LONG), other[2]]
    assert [test.nodeid for test in longest_first(mixed)] == [SHORT, LONG, *(test.nodeid for test in other)]


@pytest.mark.usefixtures("recorded")
def test_tests_of_graphs_and_others_are_mixed_in_the_proportion_of_their_times() -> None:
    graphs = [item(f"tests/nodes/test_g{number}.py::test_one", markers=("graph",)) for number in range(4)]
    others = [item(f"tests/unit/test_u{number}.py::test_one") for number in range(2)]
    found = [test.path.stem.removeprefix("test_") for test in longest_first([*others, *graphs])]
    assert found == ["g0", "u0", "g1", "g2", "u1", "g3"]


def test_a_red_run_ends_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    few = ["tests/unit/test_a.py::test_b[it's 1]", "tests/unit/test_a.py::test_c"]
    assert shlex.split(repetition.command(few, tmp_path))[1:] == few
    many = [f"tests/unit/test_a.py::test_{number}" for number in range(repetition.MOST + 1)]
    assert repetition.command(many, tmp_path).endswith("pytest @build/failed.txt")
    assert (tmp_path / "build/failed.txt").read_text().splitlines() == many


def test_the_group_of_xdist_is_no_part_of_an_id() -> None:
    assert plain_id(f"{SHORT}[jpeg@5]@test_a.py") == f"{SHORT}[jpeg@5]"
    assert plain_id(f"{SHORT}@test_a.py") == SHORT
    assert plain_id(f"{SHORT}[a@b]") == f"{SHORT}[a@b]"


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


@pytest.mark.parametrize(
    ("changed", "reached", "not_reached"),
    [
        (
            "src/merton/merton/rating/glicko.py",
            ["unit/rating/test_agi_elo.py", "nodes/test_aggregator.py"],
            ["unit/cognition/test_text.py"],
        ),
        (
            "src/merton_studies/merton_studies/papers/facts.py",
            ["studies/papers/test_papers.py"],
            ["unit/execution/test_stop.py", "unit/leaderboard/test_site.py"],
        ),
        (
            "src/merton_nodes/merton_nodes/arm/arm_node.py",
            ["nodes/test_faults.py", "system/test_loop.py"],
            ["unit/execution/test_stop.py"],
        ),
        (
            "src/merton/merton/cli/rate.py",
            ["unit/rating/test_rate_command.py", "unit/project/test_docs.py"],
            ["studies/iqa/test_iqa_gate.py"],
        ),
        (
            "src/merton_studies/merton_studies/people/sources/reading.py",
            ["studies/people/test_people_sources.py"],
            ["unit/execution/test_planner.py"],
        ),
        ("config/cell.yaml", ["unit/world/test_cell_config.py"], []),
        ("docs/reference/limits.md", ["unit/project/test_docs.py"], ["unit/execution/test_planner.py"]),
        ("tests/runs.py", ["system/test_loop.py", "unit/experiment/test_workers.py"], ["unit/cognition/test_text.py"]),
        (
            "src/merton/merton/monitor/page/monitor.js",
            ["system/test_monitor_page_browser.py"],
            ["unit/cognition/test_text.py"],
        ),
    ],
)
def test_a_change_reaches_the_tests_that_use_it(
    sources: Sources, changed: str, reached: list[str], not_reached: list[str]
) -> None:
    found = {str(test.relative_to(TESTS)) for test in affected([ROOT / changed], sources)}
    assert set(reached) <= found
    assert not set(not_reached) & found
    assert "unit/project/test_imports.py" in found, "it looks at every source"


def test_a_file_of_data_that_no_file_names_reaches_every_test(sources: Sources) -> None:
    assert affected([ROOT / "config" / "unheard_of.bin"], sources) == list(sources.of_tests)
    assert affected([], sources) == []


def test_the_reach_of_a_deleted_file_is_that_of_its_name() -> None:
    gone = ROOT / "tests" / "deleted_helper.py"
    assert Sources([gone]).modules["deleted_helper"] == gone


def test_a_revision_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affected_tests, "git", lambda *_: [])
    with pytest.raises(SystemExit, match="no revision 'nowhere'"):
        affected_tests.changed("nowhere")
