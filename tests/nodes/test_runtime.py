"""The base of every node: its parameters and its end; and when arm_node ends by itself."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from merton_interfaces.action import ExecuteActions
from rcl_interfaces.msg import ParameterType
from rclpy.action import ActionClient, ActionServer
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

from merton.errors import InputError, UnknownNameError
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.ros import names
from merton_nodes.ros.entities import DESTROY
from merton_nodes.ros.runtime import StageNode
from patience import stretched
from ros import Probe, Ros, trigger, up

IMPATIENT = """
import gc, os, signal, sys, time
from rclpy.signals import get_current_signal_handlers_options
from merton_nodes.ros.runtime import StageNode, run

class Failing(StageNode):
    def start(self):
        self.create_timer_s(0.05, self.context.try_shutdown)

class Slow(StageNode):
    def set_up(self):
        signal.signal(signal.SIGCHLD, lambda *_: print("a child"))
        self.ticks = 0
        self.closing.callback(self.brake)
        self.create_timer_s(0.05, self.tick)

    def tick(self):
        self.ticks += 1
        if self.ticks == 1:
            os.kill(os.getpid(), signal.SIGCHLD)  # no reason to end
        else:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(600)

    def brake(self):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        print("braked", gc.get_freeze_count() > 10_000, self.context.ok(), get_current_signal_handlers_options().name)

print("failed", run(lambda: Failing("failing")))
sys.exit(run(lambda: Slow("slow")))
"""


def test_a_second_signal_interrupts_a_callback_but_not_the_closing_of_a_node() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=stretched(60), check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "failed 1\na child\nbraked True True NO\n"), ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("step", ["set_up", "start"])
@pytest.mark.parametrize("error", [InputError("no such arm"), ZeroDivisionError("a fault")])
def test_a_transition_whose_step_raises_fails_and_says_why(
    ros: Ros, capfd: pytest.CaptureFixture[str], step: str, error: Exception
) -> None:
    def fail() -> None:
        raise error

    node = ros.add(StageNode, "failing")
    setattr(node, step, fail)
    configured = node.trigger_configure()
    assert (configured if step == "set_up" else node.trigger_activate()) == TransitionCallbackReturn.FAILURE
    assert not node.active
    assert str(error) in capfd.readouterr().err


def test_a_parameter_describes_its_choices_and_refuses_other_values(ros: Ros) -> None:
    given = [Parameter("planner", value="guess"), Parameter("cameras", value=["top", "toe"])]
    node = ros.add(StageNode, "chooser", parameter_overrides=given)
    assert node.parameter("mode", "slow", "", choices=("slow", "fast")) == "slow"
    assert node.describe_parameter("mode").additional_constraints == "one of: slow, fast"
    assert node.parameter("watched", [""], "", choices=("top", "side")) == [""]
    with pytest.raises(UnknownNameError, match="unknown value of planner 'guess'; choose one of: merton, moveit"):
        node.parameter("planner", "merton", "", choices=("merton", "moveit"))
    with pytest.raises(
        UnknownNameError, match=r"unknown value of cameras 'toe'; did you mean 'top'\? choose one of: side, top"
    ):
        node.parameter("cameras", [""], "", choices=("top", "side"))


def test_a_double_may_be_given_as_an_integer(ros: Ros) -> None:
    """At the start and by a service, as people type it; range and type are checked all the same."""
    given = [Parameter("level", value=3), Parameter("share", value=7), Parameter("seed", value=0.5)]
    node = ros.add(StageNode, "typed", parameter_overrides=given)
    level = node.parameter("level", 0.0, "", minimum=0, maximum=5, read_only=False)
    assert (level, type(level)) == (3.0, float)
    assert node.describe_parameter("level").type == ParameterType.PARAMETER_DOUBLE
    with pytest.raises(ParameterException, match="share"):
        node.parameter("share", 0.5, "", minimum=0.0, maximum=1.0)
    with pytest.raises(ParameterException, match="seed"):
        node.parameter("seed", 0, "")
    for name in ("set_parameters", "set_parameters_atomically"):
        answers = [getattr(node, name)([Parameter("level", value=value)]) for value in (4, 9, "4", True)]
        results = [answer[0] if isinstance(answer, list) else answer for answer in answers]
        assert [result.successful for result in results] == [True, False, False, False]
        assert "range" in results[1].reason
        assert "Wrong parameter type" in results[2].reason
        assert node.get_parameter("level").value == 4.0
    many = [Parameter("level", value=1), Parameter("autostart", value=False)]
    node.parameter("autostart", True, "", read_only=False)
    assert node.set_parameters_atomically(many).successful
    assert (node.get_parameter("level").value, node.get_parameter("autostart").value) == (1.0, False)


SHUTDOWN = {
    State.PRIMARY_STATE_UNCONFIGURED: Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
    State.PRIMARY_STATE_INACTIVE: Transition.TRANSITION_INACTIVE_SHUTDOWN,
    State.PRIMARY_STATE_ACTIVE: Transition.TRANSITION_ACTIVE_SHUTDOWN,
}
VALID: dict[int, dict[int, str]] = {
    State.PRIMARY_STATE_UNCONFIGURED: {Transition.TRANSITION_CONFIGURE: "configure"},
    State.PRIMARY_STATE_INACTIVE: {
        Transition.TRANSITION_CLEANUP: "cleanup",
        Transition.TRANSITION_ACTIVATE: "activate",
    },
    State.PRIMARY_STATE_ACTIVE: {Transition.TRANSITION_DEACTIVATE: "deactivate"},
    State.PRIMARY_STATE_FINALIZED: {},
}
"""Of the lifecycle in the ROS 2 design document (design.ros2.org/articles/node_lifecycle.html), beside `SHUTDOWN`."""
LABELS = {"configure", "activate", "deactivate", "cleanup", "shutdown", "destroy", "transition_error", "no such label"}


def test_a_transition_that_a_state_does_not_have_is_refused_and_changes_nothing(ros: Ros, probe: Probe) -> None:
    """By number and by label, in every state: rclpy alone raises from the spin, which ended all nodes of a graph."""
    node = ros.add(StageNode, "steady")
    client = probe.create_client(ChangeState, "steady/change_state")
    states = probe.create_client(GetState, "steady/get_state")
    for one in (client, states):
        ros.until(one.service_is_ready)

    def change(number: int = 0, label: str = "") -> bool:
        wanted = ChangeState.Request(transition=Transition(id=number, label=label))
        return bool(ros.ask(client, wanted).success)

    steps = (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_ACTIVE_SHUTDOWN)
    for step, (state, valid) in zip((0, *steps), VALID.items(), strict=True):
        assert not step or change(step)
        for number in {*range(12), 97, 98, 99, 255} - {*valid, SHUTDOWN.get(state)}:
            assert not change(number), f"{number} in {state}"
        for label in LABELS - {*valid.values(), "shutdown" if state in SHUTDOWN else ""}:
            assert not change(label=label), f"{label} in {state}"
        assert ros.ask(states, GetState.Request()).current_state.id == state
    assert not node.active


def test_arm_node_ends_if_its_stop_path_fails(ros: Ros) -> None:
    """A motion that can no longer be stopped must not go on: the other nodes notice the end of the process."""
    arm = up(ros, ArmNode)
    arm.draw(lambda: pytest.fail("drawn without a subscriber"))
    since = arm.stop.state.epoch
    assert arm.stop.send(arm.stop.commands, JointTrajectory(), since)

    def fail() -> None:
        raise ValueError("unforeseen")

    arm.stop.spinner.executor.create_task(fail)
    ros.until(lambda: not ros.context.ok())
    assert not arm.stop.send(arm.stop.commands, JointTrajectory(), since)


def test_a_node_that_was_cleaned_up_is_configured_again_with_its_parameters_and_nothing_twice(ros: Ros) -> None:
    """As nav2's lifecycle manager does it in RESET and STARTUP."""

    class Worker(StageNode):
        ended, under_way = 0, ""

        def set_up(self) -> None:
            self.rate_hz = self.parameter("rate_hz", 5.0, "", read_only=False)
            self.name = self.parameter("name", "a", "", choices=("a", "b"))
            self.closing.callback(lambda: setattr(self, "ended", self.ended + 1))
            self.create_publisher(State, "out", 1)
            self.create_subscription(State, "in", lambda _: None, 1)
            self.create_client(GetState, "ask")
            self.create_service(GetState, "answer", lambda _, response: response)
            self.create_timer_s(0.01, self.work)
            for end in (ActionClient, partial(ActionServer, execute_callback=lambda goal: None)):
                end(self, ExecuteActions, "act")
            if self.name == "b":
                raise InputError("no b here")

        def work(self) -> None:
            self.counters["work"] += 1

        def unfinished(self) -> str:
            return self.under_way

    def entities() -> list[int]:
        return [len(list(getattr(node, kind))) for kind in (*DESTROY, "waitables")]

    done = TransitionCallbackReturn.SUCCESS
    node = ros.add(Worker, "worker", parameter_overrides=[Parameter("rate_hz", value=2)])
    bare, configured = entities(), []
    for cycle in range(3):
        assert node.trigger_configure() == node.trigger_activate() == done
        ros.until(lambda: node.counters["work"])
        configured.append(entities())
        assert configured[0] == configured[-1] != bare
        assert node.rate_hz == 2.0 + cycle
        assert node.set_parameters([Parameter("rate_hz", value=3 + cycle)])[0].successful
        assert node.trigger_deactivate() == done
        node.under_way = "it works"
        assert node.trigger_cleanup() == TransitionCallbackReturn.FAILURE
        assert entities() == configured[0]
        node.under_way = ""
        assert node.trigger_cleanup() == done
        assert (entities(), node.ended, dict(node.counters)) == (bare, cycle + 1, {})
    failing = node = ros.add(Worker, "failing", parameter_overrides=[Parameter("name", value="b")])
    for ended in (1, 2):
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        assert (entities(), failing.ended) == (bare, ended)


def test_a_stop_is_not_lost_by_cleaning_the_arm_up(ros: Ros, probe: Probe) -> None:
    arm = up(ros, ArmNode)
    assert trigger(ros, probe, names.STOP).success
    assert arm.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
    assert arm.trigger_cleanup() == TransitionCallbackReturn.FAILURE
    assert arm.stop.state.tripped
    assert trigger(ros, probe, names.RESET_STOP).success
    assert arm.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
    assert arm.trigger_configure() == arm.trigger_activate() == TransitionCallbackReturn.SUCCESS
    assert trigger(ros, probe, names.STOP).success
