"""Every test process gets an unused ROS domain before any import of ROS."""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from merton.graph.supervisor import claim_domain, environment
from repetition import Repetition
from tiers import MARKERS, WIDE, Guard, group_of, longest_first, markers_of

if TYPE_CHECKING:  # most tests need no simulator
    from pyiqa_stand_in import StandIn

    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import SimulatedCell

GUARD = Guard()
sys.addaudithook(GUARD.hear)
_DOMAIN, _HOLDER = claim_domain()  # held for the life of this process (with xdist: of this worker)
os.environ.pop("ROS_LOCALHOST_ONLY", None)
os.environ.update(environment(_DOMAIN))
os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="merton_test_ros_log_")
os.environ["RCUTILS_COLORIZED_OUTPUT"] = "0"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # A suite that a script starts in the background ignores Ctrl-C, and so would all that its tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The same examples in every run, and no limit of time for one: a busy machine must not fail a test.
settings.register_profile("merton", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("merton")

_ABSENT = re.compile(r"E .*MissingDependencyError: .* needs [\w.]+: install ")
"""Merton's sentence about a package that is not there; of one that is broken it has the error in brackets."""

# The tree of all commands takes 70 ms: tests that call one share it.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def pytest_configure(config: pytest.Config) -> None:
    for name, need in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {need}")
    config.option.loadscopereorder = False  # `longest_first` has put them in order; xdist would count tests
    config.pluginmanager.register(Repetition(config), "repetition")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    gc.disable()  # all that the collection makes stays: scanning it again and again is a fifth of its time
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """A file whose imports need an extra that is not installed is skipped with its sentence; a broken one fails."""
    report = yield
    lines = str(report.longrepr).splitlines() if report.failed else []
    if needs := [line for line in lines if _ABSENT.match(line)]:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, needs[-1].partition("Error: ")[2])
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Markers by need, and the order; the tests of a group are done by one worker, which makes shared fixtures once."""
    for item in items:
        for name in markers_of(item):
            item.add_marker(name)
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    items[:] = longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with GUARD.over(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with GUARD.over(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    if fixturedef.scope not in WIDE:
        return (yield)
    with GUARD.over_fixture(f"{fixturedef.baseid}::{fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """The timeout of a test follows the machine, as the limits of its waits do."""
    import pytest_timeout

    from patience import stretched

    return bool(pytest_timeout.pytest_timeout_set_timer(item, settings._replace(timeout=stretched(settings.timeout))))


@pytest.fixture(scope="session")
def renders() -> None:
    """For what draws pictures with the simulator: skipped where the machine cannot."""
    from merton.errors import MissingDependencyError
    from merton.simulation.cameras import SceneCameras

    try:
        SceneCameras().close()
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.fixture
def ros() -> Iterator[Any]:
    """ROS for one test."""
    from ros import Ros

    ros = Ros()
    try:
        yield ros
    finally:
        ros.close()


@pytest.fixture
def probe(ros: Any) -> Any:
    """A node that listens and calls."""
    from ros import Probe

    return ros.add(Probe)


@pytest.fixture(scope="module")
def cell() -> SimulatedCell:
    """The embedded cell; files that need another `cell` have one of their own."""
    from merton.simulation.cell import SimulatedCell

    return SimulatedCell()


@pytest.fixture(scope="module")
def cameras(renders: None) -> Iterator[SceneCameras]:
    """What its cameras see."""
    from merton.simulation.cameras import SceneCameras

    made = SceneCameras()
    yield made
    made.close()


@pytest.fixture(scope="module")  # not longer: while playwright runs, no other test of this process can use asyncio
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright. Costly fixtures ask for it first, because it skips where it is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium (apt install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in for pyiqa behind a running server, to which metrics are sent."""
    from pyiqa_stand_in import StandIn, served

    metrics = StandIn()
    with served(metrics) as url:
        monkeypatch.setenv("MERTON_IQA_SERVER", url)
        yield metrics


@pytest.fixture
def no_pyiqa_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of pyiqa are sent to an address where no server is."""
    from pyiqa_stand_in import address_of_nothing

    monkeypatch.setenv("MERTON_IQA_SERVER", address_of_nothing())
