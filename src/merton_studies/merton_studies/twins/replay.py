"""All twins of a recording, in worker processes where the policy is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from merton import __version__
from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode, InputError, InvalidActionError, UnknownNameError
from merton.experiment.plan import distortion_seed
from merton.experiment.run import RunDirectory
from merton.perception.distortion import TEMPORAL_FAULTS
from merton.perception.distortion.setting import UNDISTORTED, Setting
from merton.processes import carried_out
from merton.progress import OnProgress, unseen
from merton.recording.reader import recording_sha256, torn_note
from merton.results.records import TestCase
from merton_studies.twins.motion import TOLERANCE_M
from merton_studies.twins.recorded import Recorded, RecordedTrial, read_recording
from merton_studies.twins.twin import Twin, TwinDesign, decisions_of, missing_picture, twins_of, without_geometry

LEAST_FOR_WORKERS = 400
"""Fewer decisions than this are done sooner in this process than new ones start."""


@dataclass(frozen=True)
class Replay:
    """The twins of a recording.

    Attributes:
        about: versions, seeds and hashes, JSON values.
        design: seeds and gate of the recorded experiment.
        settings: that were asked for, in their order.
        twins: in the order of the recording; of each trial the undistorted ones first.
        notes: sentences about what was left out, or is unsure.
    """

    about: dict[str, object]
    design: TwinDesign
    settings: tuple[Setting, ...]
    twins: tuple[Twin, ...]
    notes: tuple[str, ...]


def replay(
    path: Path,
    settings: Sequence[Setting],
    policy: str | None = None,
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> Replay:
    """The twins of the undistorted trials of a recording.

    Seeds, and the gate of images, are those of the experiment.yaml beside the recording; without one the seed is 0.

    Args:
        path: a recording: a file, or the folder of a bag.
        settings: distortions; level 0 is always there.
        policy: that is asked, of the catalogue; None for each trial's own.
        workers: processes; None: one for each usable core, where it pays.

    Raises:
        InputError: no recording, another robot, no undistorted trial, no pictures of the policy, or a recording of an
            experiment that twins cannot imitate; or a fault of time where no decision has one before it.
        UnknownNameError: no such policy.
        InfrastructureError: the policy could not be asked, or a worker was killed.
        InvalidActionError: the policy gave no action on any picture.
    """
    if policy is not None and policy not in POLICIES:
        raise UnknownNameError("vla", policy, POLICIES)
    if policy is not None and POLICIES[policy].needs_scene:
        raise InputError(f"{policy!r} reads the simulator's state, and not pictures: a recording has no twins of it")
    if policy is not None and POLICIES[policy].stateful:
        raise InputError(f"{policy!r} keeps a state from call to call, and twins are asked about single instants")
    settings = tuple(dict.fromkeys(item for item in settings if item.level))
    recorded = read_recording(path)
    design = design_of(path, recorded.linkage)
    jobs, notes = _jobs(recorded, policy)
    if not jobs:
        raise InputError(f"{path} has no undistorted trial whose policy decides by pictures: {'; '.join(notes)}")
    _check_faults_of_time(jobs, settings, policy)
    notes += _seed_notes(jobs, design)
    if bare := sorted(set().union(*(without_geometry(trial, name) for trial, name in jobs))):
        notes.append(
            f"no camera_info of {', '.join(bare)} is in the recording: the focal length and principal point of a D455 "
            "are taken"
        )
    if recorded.torn:
        notes.append(torn_note(recorded.torn))
    twins, unpaired = _paired(_twins(jobs, settings, design, workers, on_progress))
    notes += unpaired
    about: dict[str, object] = {
        "merton": __version__,
        "recording": path.name,
        "recording_sha256": recording_sha256(path),
        "seed": design.seed,
        **(
            {"quality_metric": design.quality_metric, "min_image_quality": design.min_image_quality}
            if design.min_image_quality
            else {}
        ),
        "tolerance_cm": 100 * TOLERANCE_M,
        "policies": sorted({name for _, name in jobs}),
        "distortions": [item.name for item in settings],
    }
    return Replay(about, design, settings, tuple(twins), tuple(notes))


def _paired(twins: Sequence[Twin]) -> tuple[list[Twin], list[str]]:
    """The twins of trials whose reference is a motion, and a sentence about the others.

    A policy that was not recorded is compared with its own answer to the undistorted pictures. Where that is no action,
    there is nothing to compare with: two failures are equal, and that is no agreement.

    Raises InvalidActionError if a policy gave no action on any picture.
    """
    for name in sorted({twin.policy for twin in twins}):
        own = [twin for twin in twins if twin.policy == name]
        if all(map(_is_no_action, own)):
            raise InvalidActionError(f"{name} gave no action in any of {len(own)} decisions: {own[0].motion.why}")
    lost = [twin for twin in twins if twin.setting == UNDISTORTED and twin.policy != twin.trial.policy]
    lost = [twin for twin in lost if _is_no_action(twin)]
    if not lost:
        return list(twins), []
    trials = {twin.trial.id for twin in lost}
    note = (
        f"trials without an action of {lost[0].policy} on their undistorted pictures, and so without twins: "
        f"{len(trials)}, the first because: {lost[0].motion.why}"
    )
    return [twin for twin in twins if twin.trial.id not in trials], [note]


def _is_no_action(twin: Twin) -> bool:
    return twin.motion.code == ErrorCode.INVALID_ACTION


def _check_faults_of_time(
    jobs: Sequence[tuple[RecordedTrial, str]], settings: Sequence[Setting], policy: str | None
) -> None:
    """Raises InputError where no decision has a picture before it, which a fault of time could show in its place."""
    faults = [item.name for item in settings if item.distortion in TEMPORAL_FAULTS]
    if faults and all(len(decisions_of(trial, name)) < 2 for trial, name in jobs):
        why = "every trial of the recording has one step"
        if policy is not None and any(name != trial.policy for trial, name in jobs):
            why = f"{policy!r}, which is not the recorded policy, is asked at the first step alone"
        raise InputError(f"{faults[0]} shows pictures of earlier steps, and {why}: leave it out")


def design_of(path: Path, linkage: bool) -> TwinDesign:
    """The design of the run that a recording lies in; raises InputError for one that twins cannot imitate."""
    if not (path.parent / "experiment.yaml").is_file():
        return TwinDesign(linkage=linkage)
    spec = RunDirectory(path.parent).spec
    if spec.latency_s:
        raise InputError(f"{path} was recorded with latency_s {spec.latency_s:g}: twins know no pictures of the past")
    if spec.couple is not None:
        raise InputError(f"{path} was recorded with couple: {spec.couple}: twins ask no VLM for the instruction")
    return TwinDesign(spec.seed, spec.quality_metric, spec.min_image_quality, linkage)


def _jobs(recorded: Recorded, policy: str | None) -> tuple[list[tuple[RecordedTrial, str]], list[str]]:
    """The trials with the policy to ask, and why others are left out."""
    jobs: list[tuple[RecordedTrial, str]] = []
    distorted, blind, lost = 0, set[str](), list[str]()
    scenes = {(each.task, each.scene) for each in recorded.trials if each.policy == policy and not each.level}
    for trial in recorded.trials:
        name = policy or trial.policy
        if trial.level or trial.distortion != "reference":
            distorted += 1
            continue
        if name not in POLICIES:
            raise InputError(f"the recorded policy {name!r} is not in the catalogue: name another with --policy")
        entry = POLICIES[name]
        if entry.needs_scene or entry.stateful or not entry.cameras:
            blind.add(name)
            continue
        if missing := [told for each in decisions_of(trial, name) if (told := missing_picture(trial, each, name))]:
            lost += missing[:1]
            continue
        if policy is not None and policy != trial.policy:
            if (trial.task, trial.scene) in scenes:  # another trial has shown the same pictures
                continue
            scenes.add((trial.task, trial.scene))
        jobs.append((trial, name))
    if lost and not jobs:
        raise InputError(lost[0])
    notes = []
    if lost:
        notes.append(
            f"trials without a picture that their policy saw, and so without twins: {len(lost)} (a recorder on a busy "
            "machine loses some)"
        )
    if distorted:
        trials = "trial" if distorted == 1 else "trials"
        notes.append(f"{distorted} distorted {trials} skipped (twins start from undistorted ones)")
    if recorded.without_result:
        notes.append(f"trials without a result in the recording, and so without twins: {recorded.without_result}")
    if blind:
        notes.append(f"no twins of {', '.join(sorted(blind))}, which looks at no picture, or keeps a state")
    return jobs, notes


def _seed_notes(jobs: Sequence[tuple[RecordedTrial, str]], design: TwinDesign) -> list[str]:
    """A sentence if the recorded seeds do not follow from the design's."""
    cases = ((trial, TestCase(trial.task, trial.scene, "reference", 0)) for trial, _ in jobs)
    if all(trial.distortion_seed == distortion_seed(design.seed, case) for trial, case in cases):
        return []
    return [
        f"the recorded seeds do not follow from the seed {design.seed}: chance is drawn anew (leave the recording in "
        "its run's folder)"
    ]


def _twins(
    jobs: Sequence[tuple[RecordedTrial, str]],
    settings: tuple[Setting, ...],
    design: TwinDesign,
    workers: int | None,
    on_progress: OnProgress,
) -> list[Twin]:
    """The twins of all jobs, in order: in other processes if there is enough to do and each may load the policy."""
    decisions = sum(len(trial.decisions) for trial, _ in jobs) * (1 + len(settings))
    heavy = any(POLICIES[name].memory_gb for _, name in jobs)
    if heavy or (workers is None and decisions < LEAST_FOR_WORKERS):
        workers = 1
    work = [(trial, name, settings, design) for trial, name in jobs]
    twins: dict[int, list[Twin]] = {}
    for index, made in carried_out(twins_of, work, workers):
        twins[index] = made
        on_progress(len(twins), len(jobs))
    return [twin for index in sorted(twins) for twin in twins[index]]
