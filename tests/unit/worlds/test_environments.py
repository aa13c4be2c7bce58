"""Environments of worlds: made whole or not at all, kept while they serve, and told of when they do not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import point_world
import pytest
from worlds_of_a_lab import Lab

from merton.errors import InfrastructureError, InputError
from merton.progress import OnStep, silent
from merton.worlds.adding import add
from merton.worlds.entry import WorldEntry
from merton.worlds.environments import (
    LOG_FILE,
    VARIABLE,
    Added,
    find_interpreter,
    read_added,
    size_on_disk,
    version_of,
    worlds_folder,
)
from merton.worlds.serving import serve
from patience import until

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
MADE = {"requirements": ["numpy==2.4.6"]}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab's folder."""
    return Lab(tmp_path, monkeypatch)


def environments(lab: Lab) -> list[Path]:
    """The folders of packages that there are of the world point."""
    return list((lab.worlds / "point").glob("environment-*"))


def test_the_folder_of_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "~/mine")
    assert worlds_folder() == Path.home() / "mine"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert worlds_folder() == Path("/data/merton/worlds")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert worlds_folder() == Path.home() / ".local/share/merton/worlds"


def test_pip_makes_an_environment(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real venv and a real pip, which finds one wheel in a folder: it brings numpy by a path to this one's."""
    with zipfile.ZipFile(tmp_path / "toy-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("toy.pth", str(Path(np.__file__).parents[1]))
        wheel.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        wheel.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("toy-1.0.dist-info/RECORD", "toy.pth,,\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    stages: list[str] = []
    steps: list[str] = []

    @contextmanager
    def stage(name: str) -> Iterator[OnStep]:
        stages.append(name)
        yield steps.append

    entry = lab.has(point={"requirements": ["toy==1.0"]})["point"]
    added = add(entry, None, stage)
    assert stages == [f"an environment of Python {THIS}", "1 package and all that they need", "its start"]
    assert any(step.startswith("Installing collected packages: toy") for step in steps)
    assert (added.python, added.description) == (THIS, entry.described())
    assert read_added("point") == added
    (environment,) = environments(lab)
    assert added.size_bytes == pytest.approx(size_on_disk(environment), rel=0.01)  # its first start compiles files
    world = entry.build()
    assert world.reset("reach", 3) == "go to the goal"
    world.close()


def test_pips_last_error_is_told_and_nothing_is_left(lab: Lab) -> None:
    entry = lab.has(point=MADE)["point"]
    pip = "echo 'ERROR: No matching distribution found for numpy==2.4.6'; echo 'notice: a new pip'; exit 1"
    with pytest.raises(InfrastructureError) as caught:
        add(entry, lab.interpreter(pip), silent)
    log = lab.worlds / "point" / LOG_FILE
    assert str(caught.value) == (
        "the environment of the world 'point' cannot be made: ERROR: No matching distribution found for numpy==2.4.6 "
        f"(all of it is in {log})"
    )
    assert log.read_text().splitlines()[0] == "Collecting point"
    assert environments(lab) == []
    with pytest.raises(InputError, match="not on this machine"):
        entry.described()


def test_an_environment_stays_as_long_as_it_serves(lab: Lab) -> None:
    """A change of the adapter costs a start, a change of the packages an installation."""
    calls = lab.worlds.parent / "pips"
    python = lab.interpreter(f"echo again >>{calls}")
    entry = lab.has(point=MADE)["point"]
    first = add(entry, python, silent)
    lab.adapter.write_text(lab.adapter.read_text().replace("go to the goal", "go"))
    second = add(entry, None, silent)
    assert second.environment == first.environment
    assert calls.read_text() == "again\n"
    assert second.origin != first.origin

    versions = {"python": ["3.7", THIS]}
    assert lab.has(point={**MADE, **versions})["point"].build()
    assert add(lab.has(point={**MADE, **versions})["point"], None, silent).environment == first.environment
    assert calls.read_text() == "again\n"

    entry = lab.has(point={"requirements": ["numpy==2.4.5"]})["point"]
    third = add(entry, python, silent)
    assert third.environment != first.environment
    assert [folder.name for folder in environments(lab)] == [third.environment]

    (environments(lab)[0] / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")  # broken
    world = entry.build()
    with pytest.raises(InfrastructureError, match="world 'point' failed at start: its process ended with exit status"):
        world.reset("reach", 0)
    add(entry, python, silent)
    assert calls.read_text() == 3 * "again\n"


def test_an_adapter_with_a_mistake_costs_no_second_installation(lab: Lab) -> None:
    lab.adapter.write_text("class Point:\n    pass\n")
    entry = lab.has(point=MADE)["point"]
    with pytest.raises(InfrastructureError, match="world 'point' failed at start: the class Point lacks"):
        add(entry, lab.interpreter("true"), silent)
    (environment,) = environments(lab)
    with pytest.raises(InputError, match="not on this machine"):
        entry.described()
    lab.adapter.write_text(Path(point_world.__file__).read_text())
    assert add(entry, None, silent).environment == environment.name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_addition_that_was_killed_leaves_nothing_that_looks_finished(lab: Lab, number: signal.Signals) -> None:
    entry = lab.has(point=MADE)["point"]
    mark = lab.worlds.parent / "pip"
    python = lab.interpreter(f"echo $$ >{mark}.part; mv {mark}.part {mark}; exec sleep 600")
    command = [sys.executable, "-m", "merton", "world", "add", "point", "--python", str(python)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: mark.exists() or process.poll() is not None)
        assert process.poll() is None
        pip = int(mark.read_text())
        with pytest.raises(InputError, match="another merton world add is at work"):
            add(entry, None, silent)
        process.send_signal(number)
        process.wait()
    if number == signal.SIGTERM:
        until(lambda: not alive(pip))
        assert environments(lab) == []
    else:
        os.kill(pip, signal.SIGKILL)  # nothing can end it with a process that is killed
    with pytest.raises(InputError, match="the world 'point' is not on this machine"):
        entry.build()
    add(entry, lab.interpreter("true"), silent)
    assert [folder.name for folder in environments(lab)] == [entry.added().environment]


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_interpreter_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    this = Path(sys.executable)
    for versions in ((), (THIS,), ("3.7", THIS)):
        assert find_interpreter("w", versions) == find_interpreter("w", versions, this) == this
    old = tmp_path / "python3.7"
    old.write_text("#!/bin/sh\necho 3.7\n")
    old.chmod(0o755)
    with pytest.raises(InputError, match=rf"needs Python 3\.6 or 3\.7, and '.*' is {THIS}"):
        find_interpreter("w", ("3.6", "3.7"), this)
    with pytest.raises(InputError, match="'/dev/null' is no Python that runs: name another with --python"):
        find_interpreter("w", (), Path("/dev/null"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"needs Python 3\.6 or 3\.7, which is not on PATH: install python3\.7, or"):
        find_interpreter("w", ("3.6", "3.7"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_interpreter("w", ("3.6", "3.7")) == old
    assert version_of(old) == "3.7"


def test_what_cannot_be_added_or_served_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = lab.has(here={"adapter": "m:Cell"}, far={"adapter": "", "address": "gpu:1"}, point={"interpreter": "x"})
    refused: list[tuple[Callable[[WorldEntry], object], str, str]] = [
        (lambda entry: add(entry, None, silent), "here", "is part of this installation: there is nothing to add"),
        (lambda entry: add(entry, Path("p"), silent), "point", "no environment is made for the world 'point': leave"),
        (lambda entry: serve(entry, "127.0.0.1", 0), "here", "has no process of its own on this machine"),
        (lambda entry: serve(entry, "127.0.0.1", 0), "far", "has no process of its own on this machine"),
        (lambda entry: serve(entry, "127.0.0.1", 0), "point", "is not on this machine: `merton world add point`"),
    ]
    for work, name, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            work(worlds[name])
    add(lab.has(point={"interpreter": sys.executable})["point"], None, silent)
    monkeypatch.delenv("MERTON_WORLD_TOKEN", raising=False)
    with pytest.raises(InputError, match=r"0\.0\.0\.0 is reached by other machines: set MERTON_WORLD_TOKEN to"):
        serve(lab.has(point={"interpreter": sys.executable})["point"], "0.0.0.0", 0)


def test_a_record_of_another_form_is_none(lab: Lab) -> None:
    (lab.worlds / "point").mkdir(parents=True)
    (lab.worlds / "point" / "added.json").write_text('{"origin": 3}')
    assert read_added("point") is None
    assert Added(origin={}).description is None
