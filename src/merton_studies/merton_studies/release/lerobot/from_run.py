"""Demonstrations from a run: its trials are carried out again in the embedded cell, before all cameras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from merton import __version__
from merton.errors import InputError, require
from merton.experiment.again import carried_out_again, is_as_recorded
from merton.experiment.local import SLICE_S, LocalPorts
from merton.experiment.plan import DistortedPart, ExperimentSpec, Trial, distortion_seed
from merton.experiment.run import RunDirectory
from merton.experiment.trial import rounded
from merton.perception.distortion import TEMPORAL_FAULTS
from merton.perception.distortion.stream import DistortionSetting
from merton.pool import open_pool, results
from merton.progress import OnProgress, unseen
from merton.results.parquet import require_pyarrow
from merton.results.records import Outcome, TrialRecord
from merton.simulation.delay import Instant
from merton.world.cell import load_cell
from merton.world.observation import Image
from merton_studies.release.lerobot.dataset import put_together
from merton_studies.release.lerobot.demonstration import convention_of_export, is_kept, keep, ticks, vectors_of
from merton_studies.release.lerobot.folder import Exported, begun, facts_of
from merton_studies.release.lerobot.pictures import ALL_PICTURES, PictureChoice

MOST_HZ = round(1 / SLICE_S)
"""The rate at which a run records the tool's path."""


def export(
    run: Path,
    out: Path,
    fps: int,
    successful: bool,
    on_progress: OnProgress = unseen,
    choice: PictureChoice = ALL_PICTURES,
) -> Exported:
    """Write the executed trials of a run as a dataset of LeRobot, on all cores; goes on where it was interrupted.

    Each trial is carried out again. One whose path is not the recorded one, to the last digit, is left out.

    Args:
        run: the run's folder.
        out: a new or empty folder, or one in which the same call was interrupted.
        fps: frames a second, 1 .. `MOST_HZ`. A frame shows the slice of the motion that is nearest in time, so it is
            half a slice off at most.
        successful: successes alone.
        on_progress: called with trials done and all.
        choice: cameras and size of the pictures, which are made small after their distortion.

    Raises:
        InputError: no such rate or camera, `out` holds something else, or the run has no trial to be exported or names
            no arm.
        InfrastructureError: a model cannot be asked, or a file cannot be written.
        MissingDependencyError: PyAV or pyarrow is not installed.
    """
    require("av", "people", "writing videos")
    require_pyarrow()
    if not 1 <= fps <= MOST_HZ:
        raise InputError(f"a run has at most {MOST_HZ} frames a second, got {fps}; choose 1 to {MOST_HZ}")
    directory = RunDirectory(run)
    directory.check_models()
    arm = directory.arm  # refused before the work
    records = directory.records()
    agents = {agent.id for agent in directory.spec.agents}
    wanted = [
        record
        for record in records
        if record.agent in agents
        and record.outcome is not Outcome.INFRASTRUCTURE
        and (record.success or not successful)
    ]
    if not wanted:
        raise InputError(f"{run} has no {'successful ' if successful else ''}trial that was carried out")
    asked = {"source": directory.id, "experiment_sha256": directory.experiment_sha256, "fps": fps,
             "successful": successful, **choice.asked()}  # fmt: skip
    directory.spec.facts.require_ur5("an export of demonstrations")
    choice.of(load_cell().camera_names)
    with begun(out, asked) as parts:
        folders = [parts / str(number) for number in range(len(wanted))]
        jobs = [(directory.path, folder, record, fps, choice) for folder, record in zip(folders, wanted, strict=True)]
        left_out = []
        with open_pool() as pool:
            for done, sentence in enumerate(results(pool, _demonstrate, jobs), start=1):
                left_out += [sentence] if sentence else []
                on_progress(done, len(jobs))
        made = [(folder, facts_of(record)) for folder, record in zip(folders, wanted, strict=True) if is_kept(folder)]
        if not made:
            raise InputError(f"{run} cannot be exported: {left_out[0]}")
        provenance = {
            **asked, "merton": __version__, "robot": arm, "seed": directory.spec.seed, "left_out": left_out,
            "pictures": "what the cell's cameras showed, through the distortion of the trial",
            "limits": "Simulated in MuJoCo, not recorded at a robot. Between two decisions of a policy the clock stood "
            "still. The agents are programs, not people.",
        }  # fmt: skip
        convention = convention_of_export(load_cell(), arm, fps, directory.id)
        counts = put_together(out, made, convention, provenance)
    return Exported(counts, tuple(left_out))


def _demonstrate(run: Path, folder: Path, record: TrialRecord, fps: int, choice: PictureChoice) -> str:
    """Keep the demonstration of a trial, in a process of the pool; returns why it is left out, or nothing."""
    if is_kept(folder):
        return ""
    ports, directory = _cell(run)
    spec, case = directory.spec, record.case
    if not case.is_reference and (case.distortion in TEMPORAL_FAULTS or spec.distort != DistortedPart()):
        return f"{record.id}: its pictures are distorted at the steps of the policy, or in part; no film shows that"
    agent = next(agent for agent in spec.agents if agent.id == record.agent)
    instants: list[tuple[Instant, float]] = []
    trial = carried_out_again(
        ports,
        spec,
        Trial(agent, case),
        lambda step: instants.append((Instant.of(ports.cell), ports.cell.gripper_goal_m)),
    )
    if not is_as_recorded(directory.path, record, rounded(trial.path)):
        return f"{record.id} goes another way here than it was recorded, or its trial.json is missing"
    shown = evenly(instants, fps)
    if len(shown) < 2:
        return f"{record.id}: the arm does not move in it"
    vectors = vectors_of(
        [instant.joints_rad for instant, _ in shown],
        [instant.gripper_opening_m for instant, _ in shown],
        [goal_m for _, goal_m in shown],
        ports.cell.config,
    )
    moments = [instant for instant, _ in shown]
    ports.cameras.begin_scene()
    pictures = {
        camera: choice.sized(_pictures(ports, spec, record, camera, moments))
        for camera in choice.of(ports.cameras.names)
    }
    keep(folder, trial.instruction, vectors, pictures, fps)
    return ""


def evenly(instants: Sequence[tuple[Instant, float]], fps: int) -> list[tuple[Instant, float]]:
    """The instants nearest to the frames of a film, from the first instant to the last."""
    start_ns = instants[0][0].time_ns
    times_s = np.array([(instant.time_ns - start_ns) / 1e9 for instant, _ in instants])
    frames_s = np.arange(ticks(times_s[-1], fps)) / fps
    after = np.clip(np.searchsorted(times_s, frames_s), 1, max(len(times_s) - 1, 1))
    nearest = after - (frames_s - times_s[after - 1] < times_s[after] - frames_s) if len(times_s) > 1 else [0]
    return [instants[index] for index in nearest]


def _pictures(
    ports: LocalPorts, spec: ExperimentSpec, record: TrialRecord, camera: str, moments: Sequence[Instant]
) -> Iterator[Image]:
    """Images of a camera at these moments, as a trial's policy would get them."""
    case, cameras = record.case, ports.cameras
    setting = DistortionSetting(case.distortion, case.level, distortion_seed(spec.seed, case))
    for moment in moments:
        view = cameras.render(
            case.task, case.seed, moment.qpos, camera, moment.time_ns, depth=False,
            joint_velocities=moment.joint_velocities,
        )  # fmt: skip
        cameras.keep_exposure(camera)
        yield setting.apply(camera, view.color)


@lru_cache(maxsize=1)
def _cell(run: Path) -> tuple[LocalPorts, RunDirectory]:
    """A cell for the trials of a run, in this process."""
    return LocalPorts(), RunDirectory(run)
