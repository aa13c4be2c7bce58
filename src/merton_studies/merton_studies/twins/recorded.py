"""The trials of a recording as a policy met them: pictures, state of the arm, instruction, and its decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, InvalidActionError
from merton.perception.camera.pairing import nearest
from merton.recording.messages import header_ns, namespace_of, outcome_of, own_name, reading
from merton.recording.reader import RecordingReader
from merton.results.records import Outcome, TestCase
from merton.world.action import ActionChunk, checked_chunk
from merton.world.camera_info import pinhole_of
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS
from merton.world.joint_state import arm_state
from merton.world.observation import Intrinsics

ROBOT = "merton_cell"
"""The name of the robot in `robot_description`, of the simulated cell and of the lab alike."""
_CAMERA = re.compile(
    r"camera/([^/]+)/(color/image_raw(?:/compressed)?|color/camera_info"
    r"|aligned_depth_to_color/image_raw(?:/compressed|/compressedDepth)?)"
)
_ROBOT_NAME = re.compile(r"<robot\b[^>]*\bname=\"([^\"]*)\"")
_NEVER_NS = 1 << 63
_BEHIND = 16
"""So many scenes may one topic of a recording be behind another: a recorder writes what has come topic by topic."""
_IMAGE_FIELDS = ("format", "encoding", "height", "width", "step", "is_bigendian", "data")
"""Of sensor_msgs Image and CompressedImage, as `merton.perception.camera.decoding` reads them."""


@dataclass(frozen=True)
class Picture:
    """A camera's undistorted picture, as it was recorded.

    Attributes:
        color: the fields of the message of the colour image, sensor_msgs Image or CompressedImage, and of its header
            the frame_id.
        depth: those of the depth image; None if the recording has none of this instant.
        intrinsics: of the nearest camera_info; None if there was none.
        stamp_ns: on the cell's clock [ns].
        fault: why its camera_info cannot be used, in a sentence; else empty.
    """

    color: Any
    depth: Any
    intrinsics: Intrinsics | None
    stamp_ns: int
    fault: str = ""


@dataclass(frozen=True)
class Decision:
    """One decision of a policy.

    Attributes:
        step: chunks of the trial before it.
        chunk: that was decided and carried out.
        joints_rad: (6,) the arm at that instant.
        gripper_opening_m: between the pads at that instant [m].
        least_opening_m: between the pads until the next decision [m]: fingers that close on a thing stop there.
        pictures: by camera, as far as the recording has them.
    """

    step: int
    chunk: ActionChunk
    joints_rad: NDArray[np.float64]
    gripper_opening_m: float
    least_opening_m: float
    pictures: Mapping[str, Picture]


@dataclass(frozen=True)
class RecordedTrial:
    """A trial of a recording.

    Attributes:
        id, agent, task, scene, distortion, level: as in its result.
        distortion_seed: of its distortion, as in its result.
        outcome: as in its result.
        policy: name of the model that decided.
        instruction: the task in words.
        decisions: in order, at least one.
    """

    id: str
    agent: str
    task: str
    scene: int
    distortion: str
    level: float
    distortion_seed: int
    outcome: Outcome
    policy: str
    instruction: str
    decisions: tuple[Decision, ...]

    @property
    def cluster(self) -> str:
        """The scene, which is the unit of every interval."""
        return TestCase(self.task, self.scene, "reference", 0).scene


@dataclass(frozen=True)
class Recorded:
    """A recording.

    Attributes:
        trials: those with a result, in the order of the recording.
        without_result: trials of which it has decisions and no result, such as added runs of the oracle.
        linkage: the gripper has the linkage of the real one.
        torn: where it breaks off, in one sentence; empty if it does not.
    """

    trials: tuple[RecordedTrial, ...]
    without_result: int
    linkage: bool = False
    torn: str = ""


@dataclass
class _Scene:
    """The record of a scene, from one reset of the cell to the next."""

    start_ns: int
    task: str
    seed: int
    instruction: str
    stamps: tuple[int, ...] = ()
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True)
class _Result:
    """Part of a merton_interfaces/TrialResult that twins use."""

    experiment_id: str
    trial_id: str
    agent: str
    task: str
    scene: int
    distortion: str
    level: float
    seed: int
    outcome: Outcome


def _result_of(message: Any) -> _Result:
    distortion = message.distortion
    return _Result(message.experiment_id, message.trial_id, message.agent_id, message.task, message.scene_seed,
                   distortion.name, distortion.level, distortion.seed, outcome_of(message))  # fmt: skip


class _Reading:
    """The state of a pass over a recording."""

    def __init__(self, path: Path, namespace: str) -> None:
        self.path, self.namespace = path, namespace
        self.starts: list[int] = []
        self.scenes: list[_Scene] = []
        self.counter = -1
        self.chunks: list[tuple[int, ActionChunk]] = []
        self.in_lockstep = False
        self.joints: list[tuple[int, NDArray[np.float64], float]] = []
        self.linkage = False
        self.pictures: dict[str, dict[int, dict[str, Any]]] = {}
        self.results: list[_Result] = []
        self.firsts: dict[str, ActionChunk | str | None] = {}
        """The first chunk of the evidence of each trial; a sentence for one that cannot be used, None without any."""

    def take(self, entry: Any) -> None:
        """Take one message in."""
        name = own_name(entry.topic, self.namespace)
        if found := _CAMERA.fullmatch(name):
            self._picture(found[1], found[2], entry.decode())
        elif name == "cell/state":
            self._state(entry.decode())
        elif name == "joint_states":
            self._joints(entry.decode())
        elif name == "experiment/chunk/distorted":
            message = entry.decode()
            self.chunks.append((header_ns(message), self._chunk(message)))
        elif name == "trial_results":
            self.results.append(_result_of(entry.decode()))
        elif name == "trial_evidence":
            message = entry.decode()
            self.firsts[message.trial_id] = self._first(message.first_chunks)
        elif name == "robot_description":
            robot = _ROBOT_NAME.search(entry.decode().data)
            if robot and robot[1] != ROBOT:
                raise InputError(f"{self.path} is of another robot: {robot[1]!r}; twins need Merton's, {ROBOT!r}")

    def _chunk(self, message: Any) -> ActionChunk:
        deltas = [
            [a.translation.x, a.translation.y, a.translation.z, a.rotation.x, a.rotation.y, a.rotation.z, a.gripper]
            for a in message.actions
        ]
        step_s = message.step.sec + message.step.nanosec / 1e9
        try:
            return checked_chunk(deltas, step_s, frame=message.header.frame_id, model=message.model_id,
                                 done=message.done)  # fmt: skip
        except InvalidActionError as error:
            raise InputError(f"{self.path}: a recorded chunk cannot be used: {error}") from None

    def _first(self, chunks: Any) -> ActionChunk | str | None:
        """The second of the first chunks of an evidence, which is of the distorted pictures."""
        try:
            return self._chunk(chunks[1]) if chunks else None
        except InputError as error:
            return str(error)

    def _state(self, state: Any) -> None:
        if state.scene == self.counter:
            return
        self.counter = state.scene
        self.starts.append(header_ns(state))
        self.scenes.append(_Scene(header_ns(state), state.task, state.seed, state.instruction))
        if len(self.scenes) > _BEHIND:
            self._settle(len(self.scenes) - 1 - _BEHIND)
            self._forget(self.starts[-_BEHIND])

    def _joints(self, message: Any) -> None:
        state = arm_state(message.name, message.position)
        if state is None:
            missing = [name for name in (*ARM_JOINTS, FINGER_JOINTS[0]) if name not in message.name]
            raise InputError(f"{self.path} is of another robot: its joint states lack {', '.join(missing)}")
        self.linkage |= state.linkage
        self.joints.append((header_ns(message), state.joints_rad, state.opening_m))

    def _picture(self, camera: str, kind: str, message: Any) -> None:
        kept = self.pictures.setdefault(camera, {}).setdefault(header_ns(message), {})
        if kind == "color/camera_info":
            try:
                kept["info"] = pinhole_of(message)
            except InputError as error:  # which matters where the picture is looked at
                kept["info"] = str(error)
            return
        part = "color" if kind.startswith("color") else "depth"
        fields = [name for name in _IMAGE_FIELDS if hasattr(message, name)]
        if not hasattr(kept.get(part), "encoding"):  # a raw image has lost nothing
            values = {name: getattr(message, name) for name in fields}
            kept[part] = SimpleNamespace(frame_id=message.header.frame_id, **values)

    def _forget(self, before_ns: int) -> None:
        self.chunks = [item for item in self.chunks if item[0] >= before_ns]
        self.joints = [item for item in self.joints if item[0] >= before_ns]
        for camera, at in self.pictures.items():
            last = max((stamp for stamp, parts in at.items() if "info" in parts and stamp < before_ns), default=None)
            newer = {stamp: parts for stamp, parts in at.items() if stamp >= before_ns}
            self.pictures[camera] = ({} if last is None else {last: {"info": at[last]["info"]}}) | newer

    def _settle(self, number: int) -> None:
        """Give the decisions of a scene their pictures and the state of the arm, while those are still kept."""
        scene = self.scenes[number]
        if scene.decisions:
            return
        end_ns = self.starts[number + 1] if number + 1 < len(self.starts) else _NEVER_NS
        chunks = [item for item in self.chunks if scene.start_ns <= item[0] < end_ns]
        stamps = [stamp_ns for stamp_ns, _ in chunks]
        decisions = []
        for step, (stamp_ns, chunk) in enumerate(chunks):
            before = [item for item in self.joints if item[0] <= stamp_ns]
            if not before:
                raise InputError(f"{self.path} has no joint states of the instant of a chunk")
            _, joints, opening_m = before[-1]
            next_ns = stamps[step + 1] if step + 1 < len(stamps) else end_ns
            least_m = min([opening_m, *(item[2] for item in self.joints if stamp_ns <= item[0] < next_ns)])
            pictures = {camera: self._seen(camera, scene.start_ns, stamp_ns) for camera in sorted(self.pictures)}
            there = {camera: picture for camera, picture in pictures.items() if picture is not None}
            self.in_lockstep |= any(picture.stamp_ns == stamp_ns for picture in there.values())
            decisions.append(Decision(step, chunk, joints, opening_m, least_m, there))
        scene.stamps, scene.decisions = tuple(stamps), tuple(decisions)

    def _seen(self, camera: str, start_ns: int, stamp_ns: int) -> Picture | None:
        """The newest picture of an instant."""
        seen = {at: parts for at, parts in self.pictures[camera].items() if start_ns <= at <= stamp_ns}
        newest = max((at for at, parts in seen.items() if "color" in parts), default=None)
        if newest is None:
            return None
        at = self.pictures[camera]
        deep = nearest((stamp for stamp, parts in at.items() if "depth" in parts), newest)
        told = nearest((stamp for stamp, parts in at.items() if "info" in parts), newest, None)
        info = None if told is None else at[told]["info"]
        depth = None if deep is None else at[deep]["depth"]
        if isinstance(info, str):
            return Picture(at[newest]["color"], depth, None, newest, info)
        return Picture(at[newest]["color"], depth, info, newest)

    def trials(self) -> Recorded:
        """The scenes with their results."""
        for number in range(len(self.scenes)):
            self._settle(number)
        waiting = [scene for scene in self.scenes if scene.decisions]
        if self.in_lockstep:
            for scene in waiting:
                scene.decisions = tuple(map(_of_its_instant, scene.stamps, scene.decisions))
        found, known = [], set[tuple[str, str]]()
        for result in self.results:
            key = (result.experiment_id, result.trial_id)
            if key in known:
                continue
            known.add(key)
            fitting = next((each for each in waiting if self._fits(each, result)), None)
            if fitting is not None:
                waiting.remove(fitting)
                found.append(_trial(fitting, result))
        return Recorded(tuple(found), len(waiting), self.linkage)

    def _fits(self, scene: _Scene, result: _Result) -> bool:
        """Whether a result is of this scene: the same task, and the first chunk of its evidence, if there is any."""
        if (scene.task, scene.seed) != (result.task, result.scene):
            return False
        told, first = self.firsts.get(result.trial_id), scene.decisions[0].chunk
        if told is None:
            return True
        return isinstance(told, ActionChunk) and first.model == told.model and np.array_equal(first.deltas, told.deltas)


def _of_its_instant(stamp_ns: int, decision: Decision) -> Decision:
    """A decision without pictures of another stamp: the policy saw one of this very stamp, and the recorder lost it."""
    pictures = {name: picture for name, picture in decision.pictures.items() if picture.stamp_ns == stamp_ns}
    return replace(decision, pictures=pictures)


def read_recording(path: Path) -> Recorded:
    """The trials of a recording that have decisions and a result.

    A trial is what lies between two resets of the cell. Of each decision: the chunk, the newest joint states and
    pictures of its instant on the cell's clock; in a simulated cell, whose pictures carry the stamps of decisions,
    those of its very stamp alone.

    Raises:
        InputError: no recording, no trial in it, or one of another robot.
        MissingDependencyError: without the extra `recording`.
    """
    reader = RecordingReader(path)
    taken = _Reading(path, namespace_of(reader.topics(), path))
    for entry in reader.entries():
        with reading(entry):
            taken.take(entry)
    found = taken.trials()
    if not found.trials:
        raise InputError(f"{path} has no trial with its result and the chunks of a policy{reader.in_brackets}")
    return replace(found, torn=reader.torn)


def _trial(scene: _Scene, result: _Result) -> RecordedTrial:
    return RecordedTrial(
        result.trial_id,
        result.agent,
        result.task,
        result.scene,
        result.distortion,
        result.level,
        result.seed,
        result.outcome,
        scene.decisions[0].chunk.model,
        scene.instruction,
        scene.decisions,
    )
