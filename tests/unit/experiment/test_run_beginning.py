"""The first moments of a run: whatever ends them, its folder is a run that can be gone on with, or no run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from merton.errors import FileError, InputError
from merton.experiment.run import RunDirectory
from merton.experiment.run_names import find_run, latest_run, run_folders, summarize

EXPERIMENT = """
name: x
seed: 1
agents: [{id: oracle, vlm: describe, vla: oracle}]
tasks: [test-place]
distortions: [gaussian_blur]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(EXPERIMENT)
    return path


@pytest.mark.parametrize("calls", range(1, 9))
def test_a_kill_at_any_call_leaves_a_run_or_none(file: Path, tmp_path: Path, calls: int) -> None:
    """Killed before the n-th call of the system that makes, fills or renames a file."""
    runs = tmp_path / "runs"
    code = f"""
import os, signal, sys
from pathlib import Path
from merton.experiment.run import RunDirectory
left = [{calls}]
def look(event, arguments):
    if event in ("os.mkdir", "os.rename") or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(look)
RunDirectory.create(Path({str(runs)!r}), Path({str(file)!r}), "mine")
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == -signal.SIGKILL or calls > 6  # two folders, two files, two renamings
    if (runs / "mine").exists():
        latest_run(runs, file).check_experiment(file)
    else:
        assert run_folders(runs) == []
        with pytest.raises(InputError, match="there is no run of "):
            latest_run(runs, file)
        RunDirectory.create(runs, file, "mine").check_experiment(file)
    assert [folder.name for folder in run_folders(runs)] == ["mine"]


@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_run_without_its_description_is_refused_for_that(file: Path, tmp_path: Path, content: str | None) -> None:
    run = RunDirectory.create(tmp_path / "runs", file, "mine")
    (run.path / "run.json").unlink()
    if content is not None:
        (run.path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"mine has no run\.json that says with which levels and defaults it began"):
        RunDirectory(run.path).check_experiment(file)


def test_a_run_whose_description_names_no_arm_is_refused_for_that(file: Path, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "runs", file, "mine")
    about = json.loads((run.path / "run.json").read_text())
    del about["arm"]
    run.write_json("run.json", about)
    with pytest.raises(
        FileError, match=r"mine/run\.json does not name the arm of its run in `arm`: put the run\.json back"
    ):
        RunDirectory(run.path).check_experiment(file)


def test_a_name_that_is_taken_is_refused_also_at_the_last_moment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    RunDirectory.create(runs, file, "mine")
    with pytest.raises(InputError, match="exists; continue it with --resume, or choose another name"):
        RunDirectory.create(runs, file, "mine")
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: self != runs / "mine" and exists(self))
    with pytest.raises(InputError, match="exists; continue it with --resume, or choose another name"):
        RunDirectory.create(runs, file, "mine")
    assert [path.name for path in runs.iterdir()] == ["mine"]
    assert find_run("mine", runs) == runs / "mine"


def test_a_draft_that_a_kill_left_in_another_container_does_not_refuse_a_run(tmp_path: Path) -> None:
    """Processes of containers have the same ids."""
    file = tmp_path / "e.yaml"
    file.write_text("name: t\ntasks: [reach]\ndistortions: [jpeg]\nlevels: [5]\nagents: [{id: a, vla: hold}]\n")
    left = tmp_path / "runs" / f".mine.{os.getpid()}.unfinished"
    left.mkdir(parents=True)
    run = RunDirectory.create(tmp_path / "runs", file, "mine")
    assert left.is_dir(), "it may be of a process that is alive"
    (run.path / "run.json").write_text("[" * 100_000)
    assert summarize(run.path).experiment == "t"
