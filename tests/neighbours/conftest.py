"""The programs that Merton works beside, as they are installed: `ros2 launch`, tf2, ros2_control, Gazebo, MoveIt.

A test names the ROS packages it needs, `pytestmark = pytest.mark.needs("robot_state_publisher", "tf2_ros_py")`. They
are looked up in the ament index, programs in PATH. Where one is absent, the test is skipped and says so; with
MERTON_NEIGHBOURS=required, as in the lab's CI, it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix

from merton.graph.supervisor import GRACE_S, ORPHANS_END, claim_domain
from patience import stretched, until


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*packages, programs=()): ROS packages and programs that are installed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One after the other: each of these fills both cores."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("system"))


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


class Started:
    """A process that a test started, in a session of its own.

    Attributes:
        process: the process itself; its id is that of the session.
        log: file with its output.
    """

    def __init__(self, command: list[str], log: Path, variables: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*ORPHANS_END, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, limit_s: float = 60.0) -> None:
        """Until its output has `text`."""

        def alive() -> None:
            assert self.process.poll() is None, f"ended with code {self.process.returncode}:\n{self.output}"

        until(lambda: text in self.output, limit_s, meanwhile=alive)

    def wait(self, limit_s: float = 60.0) -> int:
        """The exit code."""
        return self.process.wait(stretched(limit_s))

    def session(self) -> dict[int, str]:
        """Command lines of all processes of its session that run, by process id."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                    if int(session) == self.process.pid and state != "Z":
                        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                        found[int(folder.name)] = command.decode(errors="replace").strip()
                except OSError:  # ended meanwhile
                    continue
        return found

    def end(self) -> None:
        """End the whole session, SIGINT first."""
        for number, limit_s in GRACE_S:
            for pid in self.session():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            try:
                until(lambda: self.process.poll() is not None and not self.session(), limit_s)
                return
            except AssertionError:
                continue


class Processes:
    """Starts processes; the end of the fixture ends them, and shows the output of each if the test failed."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.started: list[Started] = []

    def start(self, *command: object, **variables: str) -> Started:
        """Start a program of PATH, or by its path, with variables on top of this environment."""
        program = shutil.which(str(command[0]))
        assert program is not None, f"{command[0]} is not in PATH"
        log = self.logs / f"{len(self.started)}_{Path(program).name}.log"
        self.started.append(Started([program, *map(str, command[1:])], log, variables))
        return self.started[-1]

    def run(self, package: str, executable: str, *arguments: object, **variables: str) -> Started:
        """As `ros2 run package executable arguments`, without the process of `ros2`."""
        path = Path(get_package_prefix(package)) / "lib" / package / executable
        return self.start(path, *arguments, **variables)

    def end(self) -> None:
        for one in reversed(self.started):
            one.end()
            print(f"--- {one.log.name}\n{one.output}")
        self.started.clear()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes of one test."""
    started = Processes(tmp_path)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module", autouse=True)
def domain() -> Iterator[int]:
    """An unused ROS domain for all tests of a file. It is not held: a graph that is started in it claims it itself."""
    number, claim = claim_domain()
    claim.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(number))
        yield number
