"""The topic of an experiment's progress."""

from __future__ import annotations

import itertools

import pytest
from merton_interfaces.msg import ExperimentProgress

from merton.errors import InfrastructureError
from merton.experiment.plan import single_trial
from merton.experiment.progress import State
from merton_nodes.experiment.progress_topic import published_tracker
from merton_nodes.ros import names
from merton_nodes.ros.newest_messages import NewestMessages
from ros import Probe, Ros


def test_a_late_subscriber_gets_how_far_the_experiment_is(ros: Ros, probe: Probe) -> None:
    spec, trial = single_trial("servo", "pick", "jpeg", 4, scene=2)
    tracker = published_tracker(probe)
    idle = probe.listen(ExperimentProgress, names.PROGRESS, names.LATCHED_QOS)
    ros.until(lambda: idle)
    assert (idle[0].state, idle[0].run_id, idle[0].trial_id) == (ExperimentProgress.IDLE, "", "")
    tracker.begin("run", spec.name, 3, {"servo": 2})
    tracker.trial(trial, "servo.pick.2.jpeg.5")
    tracker.stage("execution")
    ros.until(lambda: idle[-1].stage == "execution")
    idle.clear()
    late = probe.listen(ExperimentProgress, names.PROGRESS, names.LATCHED_QOS)
    ros.until(lambda: late)
    (seen,) = late
    assert (seen.state, seen.completed, seen.total) == (State.RUNNING, 1, 3)
    assert (seen.run_id, seen.experiment) == ("run", "live")
    assert (seen.agent, seen.task, seen.scene, seen.distortion, seen.level) == ("servo", "pick", 2, "jpeg", 4)
    assert (seen.trial_id, seen.next_trial_id) == (trial.id, "servo.pick.2.jpeg.5")
    assert (seen.stage, seen.step) == ("execution", 0)
    states = {state.name: int(state) for state in State}
    assert states == {name: getattr(ExperimentProgress, name) for name in states}


def test_a_deadline_begins_anew_while_the_cell_advances() -> None:
    """As long as its clock moves it is late, not broken; but not for ever."""
    newest, seen, readings = NewestMessages(), [], itertools.count()

    def ready(messages: dict[str, object]) -> str | None:
        seen.append(len(seen))
        return "there" if len(seen) > 6 else None

    assert newest.wait(ready, 0.01, lambda: "the cell", lambda: next(readings)) == "there"
    seen.clear()
    with pytest.raises(InfrastructureError, match=r"waited 0\.01 s for the cell; .* --set deadline_s=0\.02"):
        newest.wait(ready, 0.01, lambda: "the cell")
    with pytest.raises(InfrastructureError, match="waited"):
        newest.wait(lambda messages: None, 0.01, lambda: "the cell", lambda: next(readings))
