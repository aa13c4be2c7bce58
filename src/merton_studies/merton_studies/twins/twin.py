"""A decision once more, on distorted pictures: the policy's chunk, and the motion that the gate makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from merton.decision.models.base import POLICIES, Policy
from merton.errors import (
    ErrorCode,
    InfrastructureError,
    InputError,
    InvalidActionError,
    is_infrastructure,
    reason_of,
)
from merton.execution.gate.image_quality import ImageQuality, quality_verdict
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.experiment.plan import distortion_seed, policy_seed
from merton.perception.camera.decoding import color_of, depth_m_of
from merton.perception.camera.folder import d455_intrinsics
from merton.perception.camera.pairing import check_aligned
from merton.perception.distortion import TEMPORAL_FAULTS
from merton.perception.distortion.setting import UNDISTORTED, Setting
from merton.perception.distortion.stream import DistortionSetting
from merton.perception.distortion.temporal import FaultyStream
from merton.perception.quality import METRICS, measure
from merton.recording.messages import reading_fields
from merton.results.records import TestCase
from merton.world.action import ActionChunk, checked_chunk
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import as_transported
from merton.world.observation import CameraView, Observation
from merton_studies.twins.motion import Departure, Motion, PaperRobot, departure
from merton_studies.twins.recorded import Decision, Picture, RecordedTrial


@dataclass(frozen=True)
class TwinDesign:
    """Settings that the twins of a recording share.

    Attributes:
        seed: of the recorded experiment: distortions and chance of the twins follow from it as in that experiment.
        quality_metric, min_image_quality: of its gate of images; a minimum of 0 is no gate.
        linkage: the gripper has the linkage of the real one.
    """

    seed: int = 0
    quality_metric: str = "merton-nr"
    min_image_quality: float = 0.0
    linkage: bool = False


@dataclass(frozen=True)
class Twin:
    """One decision under one setting.

    Attributes:
        trial: the recorded trial.
        policy: the name of the policy that was asked.
        setting: of the pictures that it was shown.
        step: of the decision.
        motion: what the gate lets through.
        reference: the motion that the departure is from.
        away: how far the motion is from that one.
        is_same: the policy's chunk is the recorded one, to the last bit.
    """

    trial: RecordedTrial
    policy: str
    setting: Setting
    step: int
    motion: Motion
    reference: Motion
    away: Departure
    is_same: bool


def twins_of(trial: RecordedTrial, policy: str, settings: Sequence[Setting], design: TwinDesign) -> list[Twin]:
    """The twins of a trial: of each decision the undistorted one first, then one for each setting.

    The reference is the recorded chunk where `policy` is the recorded one. Another policy is asked at step 0 alone,
    since it would not have come to the later ones, and its reference is its own chunk on the undistorted pictures.

    Raises:
        InputError: the recording lacks pictures of a camera that the policy looks at.
        InfrastructureError, MissingDependencyError: the policy could not be asked.
    """
    own, decisions = policy == trial.policy, decisions_of(trial, policy)
    robot = _robot(design.linkage)
    views = [true_views(trial, decision, policy, robot.cell) for decision in decisions]
    references = [_passed(each.chunk, each, seen, design, robot) for each, seen in zip(decisions, views, strict=True)]
    found = []
    for setting in (UNDISTORTED, *settings):
        for index, seen in enumerate(_shown(views, setting, _seed(trial, setting, design))):
            decision = decisions[index]
            motion, chunk = _asked(trial, decision, policy, seen, design, robot)
            if not own and setting == UNDISTORTED:
                references[index] = motion
            reference = references[index]
            away = departure(motion.path, motion.end, reference.path, reference.end)
            same = own and chunk is not None and _is_same(chunk, decision.chunk)
            found.append(Twin(trial, policy, setting, decision.step, motion, reference, away, same))
    return found


def decisions_of(trial: RecordedTrial, policy: str) -> tuple[Decision, ...]:
    """The decisions of a trial that a policy is asked for again: another one than the recorded is asked once."""
    return trial.decisions if policy == trial.policy else trial.decisions[:1]


def views_at(twin: Twin, design: TwinDesign) -> tuple[dict[str, CameraView], dict[str, CameraView]]:
    """The views of the cameras that the policy looks at, at the twin's step: as recorded, and as the twin was shown."""
    trial, setting = twin.trial, twin.setting
    decisions = trial.decisions[: twin.step + 1]
    views = [true_views(trial, each, twin.policy, _robot(design.linkage).cell) for each in decisions]
    return views[-1], list(_shown(views, setting, _seed(trial, setting, design)))[-1]


def true_views(trial: RecordedTrial, decision: Decision, policy: str, cell: CellConfig) -> dict[str, CameraView]:
    """The undistorted views of the cameras that a policy looks at, as it was given them.

    Raises:
        InputError: the recording lacks one of them.
    """
    if missing := missing_picture(trial, decision, policy):
        raise InputError(missing)
    entry = POLICIES[policy]
    return {
        camera: _view(camera, decision.pictures[camera], decision, cell, entry.needs_depth) for camera in entry.cameras
    }


def without_geometry(trial: RecordedTrial, policy: str) -> set[str]:
    """The cameras that a policy looks at and whose camera_info the recording lacks: those of a D455 are taken."""
    shown = [decision.pictures for decision in decisions_of(trial, policy)]
    return {
        camera
        for camera in POLICIES[policy].cameras
        for pictures in shown
        if camera in pictures and pictures[camera].intrinsics is None and not pictures[camera].fault
    }


def missing_picture(trial: RecordedTrial, decision: Decision, policy: str) -> str:
    """The first picture that a policy looks at and the recording lacks, in a sentence; empty if it has them all."""
    entry = POLICIES[policy]
    for camera in entry.cameras:
        picture = decision.pictures.get(camera)
        of = f"of the camera {camera!r} at step {decision.step} of {trial.id!r}, which {policy!r}"
        if picture is None:
            return f"the recording has no picture {of} looks at"
        if entry.needs_depth and picture.depth is None:
            return f"the recording has no depth {of} uses"
    return ""


def _view(camera: str, picture: Picture, decision: Decision, cell: CellConfig, deep: bool) -> CameraView:
    if picture.fault:
        raise InputError(f"the camera_info of the camera {camera!r} cannot be used: {picture.fault}")
    with reading_fields(f"the picture of the camera {camera!r}"):
        color = color_of(picture.color)
        if deep:
            check_aligned(picture.color.frame_id, picture.depth.frame_id)
        depth_m = depth_m_of(picture.depth) if deep else None
    intrinsics = picture.intrinsics or d455_intrinsics(color.shape[1], color.shape[0])
    pose = cell.base_from_camera(camera, kinematics_of(cell).forward(decision.joints_rad))
    return CameraView(camera, color, depth_m, intrinsics, as_transported(pose), picture.stamp_ns)


def _seed(trial: RecordedTrial, setting: Setting, design: TwinDesign) -> int:
    """The seed of a distorted trial of the same scene, so that equal pictures are distorted equally."""
    return distortion_seed(design.seed, TestCase(trial.task, trial.scene, setting.distortion, setting.level))


def _shown(views: Sequence[Mapping[str, CameraView]], setting: Setting, seed: int) -> Iterator[dict[str, CameraView]]:
    """The views of each step under a setting, as a trial of it would show them."""
    stream = FaultyStream(setting.distortion, setting.level, seed) if setting.distortion in TEMPORAL_FAULTS else None
    plain = DistortionSetting() if stream else DistortionSetting(setting.distortion, setting.level, seed)
    for step in views:
        yield {name: stream.next(view) if stream else plain.apply_to(view) for name, view in step.items()}


def _asked(
    trial: RecordedTrial,
    decision: Decision,
    policy: str,
    views: Mapping[str, CameraView],
    design: TwinDesign,
    robot: PaperRobot,
) -> tuple[Motion, ActionChunk | None]:
    """The motion of the policy's answer to these views, and its chunk; None if the answer is no action."""
    observation = Observation(
        views,
        decision.joints_rad,
        as_transported(base_from_tcp(decision.joints_rad, robot.cell)),
        robot.gripper.gripper_open(decision.gripper_opening_m),
        trial.instruction,
        decision.step,
        noise_seed=policy_seed(design.seed, trial.agent, trial.task, trial.scene),
    )
    try:
        chunk = decided(policy, observation)
    except InvalidActionError as error:
        code = int(ErrorCode.INVALID_ACTION)
        return robot.stillness(decision.joints_rad, decision.gripper_opening_m, code, str(error)), None
    return _passed(chunk, decision, views, design, robot), chunk


def _passed(
    chunk: ActionChunk,
    decision: Decision,
    views: Mapping[str, CameraView],
    design: TwinDesign,
    robot: PaperRobot,
) -> Motion:
    """The motion that the gate of images, by these views, and that of motions let through of a chunk."""
    joints_rad, opening_m = decision.joints_rad, decision.gripper_opening_m
    if design.min_image_quality:
        better = METRICS[design.quality_metric].better == "higher"
        qualities = {
            name: ImageQuality(measure(design.quality_metric, view.color), design.quality_metric, better)
            for name, view in views.items()
        }
        refusal = quality_verdict(design.min_image_quality, qualities)
        if not refusal.ok:
            return robot.stillness(joints_rad, opening_m, int(refusal.code), refusal.message, len(chunk.deltas))
    return robot.motion(chunk, joints_rad, opening_m, decision.least_opening_m)


def decided(policy: str, observation: Observation) -> ActionChunk:
    """The chunk of a policy of the catalogue, checked and rounded as in a trial.

    Raises:
        InvalidActionError: everything that the policy cannot do, as in a trial.
        InfrastructureError: a server, an extra or weights are missing.
    """
    asked = _policy(policy)
    try:
        chunk = asked.act(observation)
        step_s = round(chunk.step_s * 1e9) / 1e9 if np.isfinite(chunk.step_s) else chunk.step_s
        return checked_chunk(chunk.deltas, step_s, frame=chunk.frame, model=policy, done=chunk.done)
    except Exception as error:  # a model may raise anything
        kind = InfrastructureError if is_infrastructure(error) else InvalidActionError
        raise kind(reason_of(error)) from error


def _is_same(one: ActionChunk, other: ActionChunk) -> bool:
    return one.frame == other.frame and one.step_s == other.step_s and np.array_equal(one.deltas, other.deltas)


@lru_cache(maxsize=2)
def _policy(name: str) -> Policy:
    return POLICIES[name].build()


@lru_cache(maxsize=2)
def _robot(linkage: bool) -> PaperRobot:
    return PaperRobot(load_cell(linkage=linkage))
