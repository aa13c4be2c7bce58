"""ros2_control with mock hardware, the controllers of the UR ROS 2 driver in it, and ur_driver_node before them.

The controllers are set up as in config/ur_controllers.yaml of ur_robot_driver 3.0.2. What is played here: the safety
mode, and the pendant's speed slider, as a command interface of the mock hardware.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from merton_interfaces.msg import SafetyState
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, Header, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from measured_stop import seconds
from merton.files import resource
from merton.simulation.model import urdf
from merton.world.cell import ARM_JOINTS, load_cell
from merton.world.geometry import Array
from merton_nodes.cell.messages import arm_state_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from patience import stretched
from ros import Permits, Probe, Ros
from simulated_ur import free_address

NEEDED = ("controller_manager", "joint_trajectory_controller", "joint_state_broadcaster", "ur_dashboard_msgs")
"""ROS packages without which there is no bench; that of `SCALED` comes from ur_controllers."""
SCALED, PLAIN = "scaled_joint_trajectory_controller", "joint_trajectory_controller"
TYPES = {
    "joint_state_broadcaster": "joint_state_broadcaster/JointStateBroadcaster",
    PLAIN: "joint_trajectory_controller/JointTrajectoryController",
    SCALED: "ur_controllers/ScaledJointTrajectoryController",
    "speed_scaling_state_broadcaster": "ur_controllers/SpeedScalingStateBroadcaster",
    "slider": "forward_command_controller/ForwardCommandController",
}
OF_UR = (SCALED, "speed_scaling_state_broadcaster", "slider")
"""Controllers that need the package ur_controllers, or only make sense with it."""


def description() -> str:
    """The cell with mock hardware: its velocities are those of its commands, as in UR's own mock."""
    joints = "".join(
        f'<joint name="{name}"><command_interface name="position"/><state_interface name="position">'
        f'<param name="initial_value">{start}</param></state_interface><state_interface name="velocity"/></joint>'
        for name, start in zip(ARM_JOINTS, load_cell().home_joints, strict=True)
    )
    slider = (
        '<gpio name="speed_scaling"><command_interface name="speed_scaling_factor">'
        '<param name="initial_value">1.0</param></command_interface><state_interface name="speed_scaling_factor">'
        '<param name="initial_value">1.0</param></state_interface></gpio>'
    )
    hardware = (
        '<ros2_control name="ur5" type="system"><hardware><plugin>mock_components/GenericSystem</plugin>'
        f'<param name="calculate_dynamics">true</param></hardware>{joints}{slider}</ros2_control>'
    )
    return urdf().replace("</robot>", f"{hardware}</robot>")


def parameters(rate_hz: int, with_ur: bool, path_tolerance_rad: float) -> dict[str, Any]:
    """Of the controllers, as UR's driver sets them, and as lab.launch.py adds to it."""
    trajectory = {
        "joints": list(ARM_JOINTS),
        "command_interfaces": ["position"],
        "state_interfaces": ["position", "velocity"],
        "state_publish_rate": 100.0,
        "action_monitor_rate": 20.0,
        "allow_partial_joints_goal": False,
        "constraints": {
            "stopped_velocity_tolerance": 0.2,
            "goal_time": 0.0,
            **{name: {"trajectory": path_tolerance_rad, "goal": 0.1} for name in ARM_JOINTS},
        },
    }
    kinds = {name: {"type": kind} for name, kind in TYPES.items() if with_ur or name not in OF_UR}
    own: dict[str, dict[str, Any]] = {
        "controller_manager": {"update_rate": rate_hz, **kinds},
        "joint_state_broadcaster": {},
        PLAIN: trajectory,
    }
    if with_ur:
        own[SCALED] = {**trajectory, "speed_scaling_interface_name": "speed_scaling/speed_scaling_factor"}
        own["speed_scaling_state_broadcaster"] = {"state_publish_rate": 100.0, "tf_prefix": ""}
        own["slider"] = {"joints": ["speed_scaling"], "interface_name": "speed_scaling_factor"}
    beside = yaml.safe_load(resource("merton_bringup", "config/ur_driver.yaml").read_text())
    return {
        name: {"ros__parameters": beside.get(name, {}).get("ros__parameters", {}) | values}
        for name, values in own.items()
    }


class Bench:
    """Everything from the commands of the cell down to the mock hardware.

    Attributes:
        controller: the active one, to which ur_driver_node is connected.
        heartbeat_timeout_s: of ur_driver_node; by default that of a busy machine.
        manager, node: the processes of ros2_control and of ur_driver_node.
        safety: messages on `cell/safety_state`.
        joints_rad: (6,) newest measurement.
    """

    def __init__(
        self,
        ros: Ros,
        probe: Probe,
        processes: Any,
        folder: Path,
        controller: str,
        *,
        rate_hz: int = 125,
        path_tolerance_rad: float = 0.2,
        every_controller: bool = False,
        heartbeat_timeout_s: float = 2.0,
    ) -> None:
        from control_msgs.msg import JointTrajectoryControllerState
        from ur_dashboard_msgs.msg import SafetyMode

        self.ros, self.probe, self.controller, self.with_ur = (
            ros,
            probe,
            controller,
            controller == SCALED or every_controller,
        )
        self.rate_hz, self.heartbeat_timeout_s = rate_hz, heartbeat_timeout_s
        self.state_type = JointTrajectoryControllerState
        self.raw: list[bytes] = []
        self.joints_rad = np.full(6, np.nan)
        self.publishers: list[Any] = []
        self.say(String, names.ROBOT_DESCRIPTION, String(data=description()))
        self.say(SafetyMode, names.DRIVER_SAFETY, SafetyMode(mode=1))
        self.permits = Permits(probe)
        self.trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.slider_commands = probe.create_publisher(Float64MultiArray, "slider/commands", 10)
        heartbeat = probe.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
        self.beats = True
        probe.create_timer(0.05, lambda: heartbeat.publish(Header()) if self.beats else None)
        self.safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.scaling = probe.listen(Float64, names.DRIVER_SPEED_SCALING, names.LATEST_QOS)
        probe.create_subscription(JointState, names.DRIVER_JOINT_STATES, self.on_joints, names.LATEST_QOS)
        state = f"{controller}/controller_state"
        probe.create_subscription(self.state_type, state, self.raw.append, names.RELIABLE_QOS, raw=True)
        file = folder / "controllers.yaml"
        file.write_text(
            json.dumps(parameters(rate_hz, self.with_ur, path_tolerance_rad))
        )  # YAML too, and without aliases, which rcl refuses
        self.manager = processes.run("controller_manager", "ros2_control_node", "--ros-args", "--params-file", file)
        for name in TYPES if self.with_ur else [name for name in TYPES if name not in OF_UR]:
            self.load(name)
        self.switch([name for name in ("joint_state_broadcaster", *OF_UR[1:]) if name in self.loaded], [])
        self.switch([controller], [])
        self.gripper = free_address()
        server = processes.start(sys.executable, "-m", "merton.simulation.urcap_server", "--address", self.gripper)
        server.wait_for("ready")
        self.processes, self.heartbeat = processes, heartbeat
        self.start_node()

    def start_node(self) -> None:
        """Start ur_driver_node, and wait until it is ready."""
        self.safety.clear()
        self.node = self.processes.run("merton_nodes", "ur_driver_node", *self.arguments(self.gripper))
        self.ros.until(lambda: self.safety and self.safety[-1].mode == SafetyState.NORMAL, 120)
        for publisher in (self.trajectories, self.heartbeat):
            self.ros.until(lambda publisher=publisher: publisher.get_subscription_count() == 1)
        self.ros.until(lambda: len(self.raw) > 10 and np.isfinite(self.joints_rad).all())

    @property
    def node_pid(self) -> int:
        """Of ur_driver_node, and not of its guard."""
        return self.node.process.pid

    def arguments(self, gripper: str) -> list[str]:
        """Of ur_driver_node, for the controller that is active."""
        found = ["--ros-args", "-p", f"gripper_hostname:={gripper}"]
        found += ["-p", f"heartbeat_timeout_s:={self.heartbeat_timeout_s}"]
        found += ["-p", f"connect_timeout_s:={min(120.0, stretched(60.0))}"]
        for name in (names.DRIVER_TRAJECTORY, names.DRIVER_CONTROLLER_STATE, names.DRIVER_GOALS):
            found += ["-r", f"{name}:={name.replace(SCALED, self.controller)}"]
        return found

    def say(self, kind: Any, topic: str, message: Any) -> None:
        """Publish for late subscribers, too."""
        publisher = self.probe.create_publisher(kind, topic, names.LATCHED_QOS)
        publisher.publish(message)
        self.publishers.append(publisher)

    def on_joints(self, message: JointState) -> None:
        self.joints_rad, _ = arm_state_of(message)

    def load(self, name: str) -> None:
        from controller_manager_msgs.srv import ConfigureController, LoadController

        self.loaded = [*getattr(self, "loaded", []), name]
        for kind, service in ((LoadController, "load_controller"), (ConfigureController, "configure_controller")):
            answer = self.ros.call(self.probe, kind, f"controller_manager/{service}", kind.Request(name=name))
            assert answer.ok, f"{service} {name}"

    def switch(self, on: list[str], off: list[str]) -> None:
        """Activate and deactivate controllers, and hear from the one of this bench if it is activated."""
        from controller_manager_msgs.srv import SwitchController

        request = SwitchController.Request(activate_controllers=on, deactivate_controllers=off, strictness=2)
        assert self.ros.call(self.probe, SwitchController, "controller_manager/switch_controller", request).ok
        heard = len(self.raw)
        self.ros.until(lambda: self.controller not in on or len(self.raw) > heard + 10)

    def slide(self, scaling: float) -> None:
        """Set the pendant's speed slider, 0 .. 1."""
        self.ros.until(lambda: self.slider_commands.get_subscription_count() == 1)
        self.slider_commands.publish(Float64MultiArray(data=[scaling]))
        self.ros.until(lambda: self.scaling and abs(self.scaling[-1].data - 100 * scaling) < 1e-6)

    def states(self, since: int = 0) -> list[Any]:
        """The controller's own states from a number of messages on."""
        return [deserialize_message(raw, self.state_type) for raw in self.raw[since:]]

    def motion(self, goal: Array, duration_s: float) -> JointTrajectory:
        """From here to a goal (6,) [rad], slow at both ends."""
        message = JointTrajectory(joint_names=list(ARM_JOINTS))
        here = self.joints_rad
        for share in np.linspace(0.0, 1.0, 21):
            turn, speed = 0.5 - 0.5 * np.cos(np.pi * share), np.pi / 2 / duration_s * np.sin(np.pi * share)
            message.points.append(
                JointTrajectoryPoint(
                    positions=(here + turn * (goal - here)).tolist(),
                    velocities=(speed * (goal - here)).tolist(),
                    time_from_start=convert.duration_message(share * duration_s),
                )
            )
        message.points[0].velocities = message.points[-1].velocities = [0.0] * 6
        return message

    def move(self, goal: Array, duration_s: float) -> None:
        self.trajectories.publish(self.permits.given(self.motion(goal, duration_s)))

    def stop(self) -> None:
        self.trajectories.publish(JointTrajectory())

    def wait_for_rest(self, since_s: float = 0.0) -> None:
        """Until the controller's reference stands, in a state from after an instant of the system clock [s]."""

        def rests() -> bool:
            state = self.states(len(self.raw) - 1)[-1]
            return seconds(state.header.stamp) > since_s and not np.abs(state.reference.velocities).max() > 1e-9

        self.ros.until(rests)

    def wait_for_fault(self, *texts: str) -> None:
        """Until there is one, whose message has one of the texts."""
        self.ros.until(lambda: self.safety[-1].mode == SafetyState.FAULT)
        message = self.safety[-1].message
        assert any(text in message for text in texts), message
