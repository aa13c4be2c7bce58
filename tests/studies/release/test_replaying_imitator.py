"""The loop record, export, imitate: a policy that replays exported rows does the task, by the export's own convention.

A perfect imitator is the first test of a convention: read by `pi0_base`, the same rows did 0 of 5 and 0 of 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from one_process import in_this_process

from merton.decision.models.base import POLICIES, Policy, PolicyEntry
from merton.decision.models.conventions import Convention
from merton.experiment.local import LocalPorts
from merton.experiment.run import RunDirectory
from merton.world.action import ActionChunk
from merton.world.observation import Observation
from merton_studies.release.lerobot import from_run
from merton_studies.release.lerobot.pictures import PictureChoice
from runs import records, undisturbed_run

av = pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dataset)")

EXPERIMENT = """
name: {name}
agents: [{{id: {agent}, vla: {agent}}}]
tasks: {tasks}
distortions: [jpeg]
levels: [0]
scenes: {scenes}
max_steps: 40
"""
ROWS = 8
"""Rows of a chunk."""
SCENES = 5
TASKS = ("reach", "pick")


class Replay(Policy):
    """Gives the rows of the exported episode that began with the picture most like the first one that it sees."""

    name = "replay"
    cameras = ("top",)

    def __init__(self, dataset: Path, convention: Convention) -> None:
        table = parquet.read_table(dataset / "data/chunk-000/file-000.parquet")
        self._rows, self._episode = (np.array(table.column(name).to_pylist()) for name in ("action", "episode_index"))
        self._first = [_first_picture(dataset, number) for number in range(self._episode.max() + 1)]
        self._convention, self._now = convention, 0

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> Replay:
        """The policy of an entry whose settings name the data set."""
        assert entry.means is not None
        return cls(Path(entry.settings["dataset"]), entry.means)

    def act(self, observation: Observation) -> ActionChunk:
        """The next `ROWS` rows; the last one again at the end."""
        if observation.step == 0:
            color = observation.views["top"].color.astype(int)
            self._now = int(np.argmin([np.abs(color - first).mean() for first in self._first]))
        rows = self._rows[self._episode == self._now]
        start = min(observation.step * ROWS, len(rows) - 1)
        return self._convention.chunk(rows[start : start + ROWS], state=self._convention.joints_of(observation))


def _first_picture(dataset: Path, episode: int) -> np.ndarray:
    with av.open(str(dataset / f"videos/observation.images.top/chunk-000/file-{episode:03d}.mp4")) as opened:
        return np.asarray(next(opened.decode(video=0)).to_ndarray(format="rgb24"), dtype=int)


@pytest.fixture
def replaying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No runs of the oracle are added to those of the policy; its entry of the catalogue is gone afterwards."""
    monkeypatch.setattr(LocalPorts, "knows_scene", False)
    yield
    POLICIES._entries.pop("replay", None)


@pytest.fixture(scope="module")
def shown(renders: None, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """What the oracle did."""
    values = {"name": "shown", "agent": "oracle", "tasks": list(TASKS), "scenes": SCENES}
    run = undisturbed_run(tmp_path_factory.mktemp("shown"), EXPERIMENT.format(**values))
    assert all(record.success for record in records(run))
    return run


def exported(run: RunDirectory, out: Path, fps: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_this_process(monkeypatch, from_run)
    from_run._cell.cache_clear()
    choice = PictureChoice(("top",))  # the policy's
    assert from_run.export(run.path, out, fps, successful=True, choice=choice).left_out == ()
    return out


def successes_of_replay(
    folder: Path, dataset: Path, tasks: Sequence[str], scenes: int, convention: str = ""
) -> dict[str, list[bool]]:
    """Task to the success in each scene, of a policy that replays the data set."""
    POLICIES._entries["replay"] = PolicyEntry(
        name="replay",
        description="",
        adapter=f"{__name__}:Replay",
        cameras=("top",),
        settings={"dataset": str(dataset)},
        convention=convention or {"from": str(dataset)},  # type: ignore[arg-type]
    )
    folder.mkdir()
    values = {"name": "again", "agent": "replay", "tasks": list(tasks), "scenes": scenes}
    found: dict[str, list[bool]] = {task: [] for task in tasks}
    for record in records(undisturbed_run(folder, EXPERIMENT.format(**values))):
        assert record.agent == "replay"
        found[record.case.task].append(bool(record.success))
    return found


@pytest.mark.usefixtures("replaying")
def test_a_replaying_imitator_does_the_tasks(
    shown: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the convention of another family: half the time to a row, the gripper in other numbers."""
    dataset = exported(shown, tmp_path / "dataset", 10, monkeypatch)
    assert successes_of_replay(tmp_path / "again", dataset, TASKS, SCENES) == dict.fromkeys(TASKS, [True] * SCENES)
    assert successes_of_replay(tmp_path / "otherwise", dataset, ["pick"], 1, "pi0_base") == {"pick": [False]}


@pytest.mark.usefixtures("replaying")
def test_it_does_them_at_another_rate(shown: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = exported(shown, tmp_path / "dataset", 25, monkeypatch)
    assert successes_of_replay(tmp_path / "again", dataset, TASKS, 2) == dict.fromkeys(TASKS, [True] * 2)
