"""The programs that Merton works beside, as they are installed: `ros2 launch`, tf2, ros2_control, Gazebo, MoveIt.

A test names the ROS packages it needs, `pytestmark = pytest.mark.needs("robot_state_publisher", "tf2_ros_py")`. They
are looked up in the ament index, programs in PATH. Where one is absent, the test is skipped and says so; with
MERTON_NEIGHBOURS=required, as in the lab's CI, it fails.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from merton.graph.supervisor import LAST_USER_DOMAIN
from sessions import Processes

DOMAINS = range(215, LAST_USER_DOMAIN + 1)
"""ROS domains whose ports lie above Linux' ephemeral ones; `claim_domain` chooses none of them by itself."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*packages, programs=()): ROS packages and programs that are installed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    absent = [name for mark in item.iter_markers("needs") for name in _absent(mark)]
    if absent:
        sentence = f"not installed on this machine: {', '.join(dict.fromkeys(absent))}"
        if os.environ.get("MERTON_NEIGHBOURS") == "required":
            pytest.fail(sentence)
        pytest.skip(sentence)


def _absent(mark: pytest.Mark) -> Iterator[str]:
    """The packages and programs of a mark that are not installed."""
    for package in mark.args:
        try:
            get_package_prefix(package)
        except PackageNotFoundError:
            yield package
    yield from (program for program in mark.kwargs.get("programs", ()) if shutil.which(program) is None)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes of one test."""
    started = Processes(tmp_path)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an experiment of one trial, in a folder for what comes of it."""
    file = tmp_path_factory.mktemp("one_trial") / "one_trial.yaml"
    file.write_text(
        "name: one_trial\n"
        "seed: 5\n"
        "agents: [{id: oracle, vla: oracle}]\n"
        "tasks: [reach]\n"
        "distortions: [jpeg]\n"
        "levels: [5]\n"
    )
    return file


@pytest.fixture(scope="module", autouse=True)
def domain() -> Iterator[int]:
    """A ROS domain for all tests of a file, which no other tests use: a graph that is started in it can claim it."""
    with socket.socket() as holder, pytest.MonkeyPatch.context() as patch:
        number = next(number for number in DOMAINS if _reserved(number, holder))
        patch.setenv("ROS_DOMAIN_ID", str(number))
        yield number


def _reserved(number: int, holder: socket.socket) -> bool:
    """Keep other tests out of a domain for as long as `holder` is open; false if they are in it."""
    try:
        holder.bind(("127.0.0.1", 32000 + number))
    except OSError:
        return False
    return True
