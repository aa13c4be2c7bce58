"""The base of every node: its parameters and its end; and when arm_node ends by itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

from merton.errors import UnknownNameError
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.ros.runtime import StageNode
from ros import Ros, up

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
    ended = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "failed 1\na child\nbraked True True NO\n"), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_parameter_describes_its_choices_and_refuses_other_values(ros: Ros) -> None:
    given = [Parameter("planner", value="guess"), Parameter("cameras", value=["top", "toe"])]
    node = ros.add(StageNode, "chooser", parameter_overrides=given)
    assert node.parameter("mode", "slow", "", choices=("slow", "fast")) == "slow"
    assert node.describe_parameter("mode").additional_constraints == "one of: slow, fast"
    assert node.parameter("watched", [""], "", choices=("top", "side")) == [""]
    with pytest.raises(UnknownNameError, match="unknown value of planner 'guess'; choose one of: merton, moveit"):
        node.parameter("planner", "merton", "", choices=("merton", "moveit"))
    with pytest.raises(UnknownNameError, match="unknown value of cameras 'toe'; choose one of: side, top"):
        node.parameter("cameras", [""], "", choices=("top", "side"))


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
