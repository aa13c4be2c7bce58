"""The trials of a recording on the cell's clock: times of their motions, states of the arm, commands to the gripper."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.recording.messages import header_ns, namespace_of, outcome_of, own_name, picture_topics, reading
from merton.recording.reader import RecordingReader
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.world.geometry import Array
from merton.world.joint_state import arm_state

IMAGES = re.compile(r"(?:camera/([^/]+)/color|(distorted)/([^/]+))/image_raw")
"""Names of topics of colour images: a camera's own, or its distorted copy, which a policy sees."""
_TOPICS = ("joint_states", "cell/state", "gripper_controller/commands", "experiment/progress",
           "experiment/chunk/distorted", "trial_results")  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A trial of a recording: its record, the task in words, and its beginning and end on the cell's clock [ns]."""

    record: TrialRecord
    instruction: str
    start_ns: int
    end_ns: int


class Timeline:
    """Everything of a recording but its pictures.

    Attributes:
        trials: those that have a result and moved the arm, in their order.
        left_out: a sentence for each other one that has a result.
        linkage: the gripper has one.
        torn: where the recording breaks off, in one sentence; empty if it does not.
        rate_hz: pictures of a camera per second while it delivers; None without any.

    Raises:
        InputError: no recording, or no trial with its result in it.
        MissingDependencyError: without the extra `recording`.
    """

    def __init__(self, recording: Path) -> None:
        self.linkage = False
        self._stamps, self._sent, self._states = array("q"), array("q"), array("d")
        self._goals: list[tuple[int, float]] = []  # when it was sent [ns, wall clock], opening [m]
        self._instructions: list[tuple[int, str]] = []  # stamp, text
        self._begun: list[tuple[int, str]] = []  # when it was sent, trial under way
        self._chunks: list[tuple[int, int]] = []  # when it was sent, stamp of what it was decided on
        self._pictures: dict[str, list[int]] = {}
        results: dict[tuple[str, str], TrialRecord] = {}
        reader = RecordingReader(recording)
        namespace = namespace_of(reader.topics(), recording)
        pictures = picture_topics(reader.topics(), namespace, IMAGES)
        for entry in reader.entries():
            name = own_name(entry.topic, namespace)
            if name not in _TOPICS and entry.topic not in pictures:
                continue
            with reading(entry):
                message = entry.decode()
                if name == "trial_results":
                    results.setdefault((message.experiment_id, message.trial_id), record_of(message))
                else:
                    self._take(name, message, entry.publish_time_ns)
        self.torn = reader.torn
        self._begun.sort()
        self._chunks.sort()
        if not results:
            raise InputError(f"{recording} has no trial with its result{reader.in_brackets}")
        self.rate_hz = self._rate()
        self.trials: list[Shown] = []
        self.left_out: list[str] = []
        for record in results.values():
            self._add(record)

    def at(self, times_ns: Array) -> tuple[Array, Array, Array]:
        """Joint angles (n, 6) [rad], opening [m] and commanded opening [m] at times of a trial [ns].

        The first time is the trial's beginning: a simulated cell opens the gripper before it without a command.
        """
        stamps = np.array(self._stamps, dtype=np.int64)
        states = np.array(self._states).reshape(-1, 7)
        first, last = np.searchsorted(stamps, [times_ns[0], times_ns[-1]])
        near = slice(max(first - 1, 0), last + 2)
        rows = np.column_stack([np.interp(times_ns, stamps[near], column) for column in states[near].T])
        sent = np.interp(times_ns, stamps[near], np.array(self._sent, dtype=np.float64)[near])
        goals = [(sent[0], rows[0, 6]), *(goal for goal in self._goals if goal[0] > sent[0])]
        moments = [moment for moment, _ in goals]
        commanded = [goals[bisect_right(moments, moment) - 1][1] for moment in sent]
        return rows[:, :6], rows[:, 6], np.array(commanded)

    def _take(self, topic: str, message: Any, sent_ns: int) -> None:
        match topic:
            case "joint_states":
                state, stamp = arm_state(message.name, message.position), header_ns(message)
                if state is not None and (not self._stamps or stamp > self._stamps[-1]):
                    self.linkage = state.linkage
                    self._stamps.append(stamp)
                    self._sent.append(sent_ns)
                    self._states.extend([*state.joints_rad, state.opening_m])
            case "cell/state":
                if not self._instructions or self._instructions[-1][1] != message.instruction:
                    self._instructions.append((header_ns(message), message.instruction))
            case "gripper_controller/commands":
                if message.data:
                    self._goals.append((sent_ns, 2 * float(message.data[0])))
            case "experiment/progress":
                self._begun.append((sent_ns, message.trial_id))
            case "experiment/chunk/distorted":
                self._chunks.append((sent_ns, header_ns(message)))
            case _:
                self._pictures.setdefault(topic, []).append(header_ns(message))

    def _rate(self) -> int | None:
        rates = [1e9 / float(np.median(steps)) for steps in map(np.diff, self._pictures.values()) if len(steps)]
        return max(1, round(max(rates))) if rates else None

    def _add(self, record: TrialRecord) -> None:
        """A trial by its result."""
        if record.outcome is Outcome.INFRASTRUCTURE:
            return
        known = [sent for sent, _ in self._begun]
        starts = [
            stamp
            for sent, stamp in self._chunks
            if (index := bisect_right(known, sent)) and self._begun[index - 1][1] == record.id
        ]
        end_ns = starts[0] + round(record.simulated_s * 1e9) if starts else 0
        if not starts or not self._stamps or end_ns - starts[0] < 1e8 or self._stamps[-1] < starts[0]:
            self.left_out.append(f"{record.id}: its motion is not in the recording")
            return
        told = [text for stamp, text in self._instructions if stamp <= starts[0]]
        self.trials.append(Shown(record, told[-1] if told else record.case.task, starts[0], end_ns))


def record_of(message: Any) -> TrialRecord:
    """The record of a trial from a merton_interfaces/TrialResult, as far as an episode has columns for it."""

    def known(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    distortion = message.distortion
    return TrialRecord(
        experiment=message.experiment_id,
        agent=message.agent_id,
        case=TestCase(message.task, int(message.scene_seed), distortion.name, int(distortion.level)),
        outcome=outcome_of(message),
        cognition=known(message.cognition),
        decision=known(message.decision),
        execution=known(message.execution),
        progress=known(message.progress),
        simulated_s=message.elapsed.sec + message.elapsed.nanosec / 1e9,
    )
