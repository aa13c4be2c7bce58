"""Twins against execution: a twin's prediction of a simulated trial, and the motion that is then executed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from merton.experiment.local import LocalPorts
from merton.experiment.plan import ExperimentSpec, Trial, distortion_seed
from merton.experiment.ports import Side
from merton.experiment.trial import TrialRun
from merton.perception.distortion.setting import Setting
from merton.recording.images import COLOR_FORMATS, png16
from merton.results.records import Outcome, TestCase
from merton.world.action import ActionChunk
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Observation
from merton_studies.twins.agreement import Checked
from merton_studies.twins.motion import Departure, departure
from merton_studies.twins.recorded import Decision, Picture, RecordedTrial
from merton_studies.twins.summary import TrialTwin, by_trial
from merton_studies.twins.twin import TwinDesign, twins_of


def as_recorded(view: CameraView, color_format: str) -> Picture:
    """A view as a recording has it: colour in a form of `COLOR_FORMATS`, depth without loss."""
    depth = None
    if view.depth_m is not None:
        millimetres = np.rint(view.depth_m * 1000.0).astype(np.uint16)
        depth = SimpleNamespace(frame_id="", format="16UC1; png compressed", data=bytes(png16(millimetres)))
    content = bytes(COLOR_FORMATS[color_format](view.color))
    color = SimpleNamespace(frame_id="", format=f"rgb8; {color_format} compressed bgr8", data=content)
    return Picture(color, depth, view.lens, view.stamp_ns)


class WatchedPorts(LocalPorts):
    """A simulated cell that notes the decisions of a trial.

    Attributes:
        decisions: on the distorted side, which is the reference at level 0, since the last reset; as the graphs of
            simulated cells record them, with colour as PNG.
        from_jpeg: the same as a lab's graph records them, with colour as JPEG.
    """

    decisions: list[Decision]
    from_jpeg: list[Decision]

    def reset(self, task: str, scene: int) -> str:
        self.decisions, self.from_jpeg = [], []
        self.world.on_slice = self._note_opening
        return super().reset(task, scene)

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        chunk = super().act(model, observation, side)
        if side == "distorted":
            opening_m, views = self.cell.gripper_opening_m, observation.views.items()
            for kept, color_format in ((self.decisions, "png"), (self.from_jpeg, "jpeg")):
                pictures = {name: as_recorded(view, color_format) for name, view in views}
                made = Decision(observation.step, chunk, observation.joints, opening_m, opening_m, pictures)
                kept.append(made)
        return chunk

    def _note_opening(self) -> None:
        for kept in (self.decisions, self.from_jpeg):
            if kept:
                least_m = min(kept[-1].least_opening_m, self.cell.gripper_opening_m)
                kept[-1] = replace(kept[-1], least_opening_m=least_m)


@dataclass(frozen=True)
class Pair:
    """A trial that was predicted by a twin and then executed.

    Attributes:
        trial: the undistorted run, as recorded.
        setting: of the distorted one.
        twin: the prediction from the recorded pictures.
        from_jpeg: that from pictures that were recorded as JPEG.
        away: how far the executed run was from the executed undistorted one.
        outcome: of the executed run.
        steps: chunks of the executed run.
        cut: whether the gate cut the executed run short.
        first_chunk: that the executed run decided on; None if the policy refused.
    """

    trial: RecordedTrial
    setting: Setting
    twin: TrialTwin
    from_jpeg: TrialTwin
    away: Departure
    outcome: Outcome
    steps: int
    cut: bool
    first_chunk: ActionChunk | None

    def checked(self) -> Checked:
        """Its row of a table."""
        first = self.trial.decisions[0]
        return Checked(
            self.trial.policy,
            self.trial.cluster,
            len(self.trial.decisions) == 1 and first.chunk.done,
            self.setting.distortion,
            self.setting.level,
            round(100 * self.twin.farthest.away.distance_m, 4),
            round(100 * self.from_jpeg.farthest.away.distance_m, 4),
            round(100 * self.away.distance_m, 4),
            self.trial.outcome is Outcome.SUCCESS,
            self.outcome is Outcome.SUCCESS,
            self.twin.verdict,
            self.cut,
        )


def recorded_run(ports: WatchedPorts, spec: ExperimentSpec, task: str, scene: int) -> tuple[RecordedTrial, TrialRun]:
    """Run the first agent of an experiment undistorted in a scene: as a recording has it, and as it was executed."""
    agent, case = spec.agents[0], TestCase(task, scene, "reference", 0)
    trial = Trial(agent, case)
    run = _run(ports, spec, trial)
    seed, decisions = distortion_seed(spec.seed, case), tuple(ports.decisions)
    recorded = RecordedTrial(trial.id, agent.id, task, scene, case.distortion, 0, seed, _outcome(run), agent.vla,
                             run.instruction, decisions)  # fmt: skip
    return recorded, run


def pairs_of(
    ports: WatchedPorts, spec: ExperimentSpec, task: str, scene: int, settings: Sequence[Setting]
) -> list[Pair]:
    """Run the first agent of an experiment undistorted in a scene, predict each setting, and run it.

    None where the policy refuses the task. Distortions of twin and trial have the same seed. Noise depends on the
    pixels too: on a picture that was recorded as JPEG it is other noise of the same strength.
    """
    recorded, reference = recorded_run(ports, spec, task, scene)
    if not recorded.decisions:
        return []
    predicted, from_jpeg = (
        {
            each.twins[0].setting: each
            for each in by_trial(twins_of(trial, trial.policy, settings, TwinDesign(spec.seed)))
        }
        for trial in (recorded, replace(recorded, decisions=tuple(ports.from_jpeg)))
    )
    pairs = []
    for setting in settings:
        case = TestCase(task, scene, setting.distortion, setting.level)
        run = _run(ports, spec, Trial(spec.agents[0], case))
        first = ports.decisions[0].chunk if ports.decisions else None
        away = departure(run.path, tool_of(run), reference.path, tool_of(reference))
        pairs.append(
            Pair(
                recorded,
                setting,
                predicted[setting],
                from_jpeg[setting],
                away,
                _outcome(run),
                run.steps,
                run.cut_short,
                first,
            )
        )
    return pairs


def _run(ports: WatchedPorts, spec: ExperimentSpec, trial: Trial) -> TrialRun:
    run = TrialRun(ports, spec, trial)
    while not run.over:
        run.take_step()
    return run


def _outcome(run: TrialRun) -> Outcome:
    if run.outcome is not None:
        return run.outcome
    return Outcome.SUCCESS if run.view.success else Outcome.FAILURE


def tool_of(run: TrialRun) -> Matrix:
    """The final tool pose of a run in the cell, whose robot has one."""
    assert run.view.base_from_tcp is not None
    return run.view.base_from_tcp
