"""The lab: arm, 2F-140 and RealSense cameras, the person who arranges and judges, and Merton's nodes above them.

ros2 launch merton_bringup lab.launch.py robot_ip:=192.0.2.10 camera_serials:="wrist=1234, top=2345, side=3456"
ros2 launch merton_bringup lab.launch.py robot_ip:=192.0.2.10 camera_serials:="..." arm:=ros2_control

Nothing moves before an experiment is started and its operator has answered: docs/lab/lab_robot.md.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import LaunchConfiguration
from launch_ros.substitutions import FindPackageShare
from ruamel.yaml import YAML

from merton.errors import InputError
from merton.files import resource
from merton.graph.lab import ARMS, GRIPPERS, SIMULATED_GRIPPER, lab_variant
from merton.world.cell import cell_file, load_cell
from merton_nodes.ros import names
from merton_nodes.ros.launching import EXPERIMENT_ARGUMENTS, describe, experiment, include, require, state_publisher

MOVEIT = ("moveit_py", "moveit_planners_ompl", "pilz_industrial_motion_planner", "moveit_kinematics")
"""Packages that config/moveit names plugins of, besides MoveIt's own."""
ARGUMENTS = [
    DeclareLaunchArgument(
        "arm",
        default_value="rtde",
        choices=ARMS,
        description="rtde: directly; ros2_control: through the UR ROS 2 driver; moveit: so, with MoveIt as the planner",
    ),
    DeclareLaunchArgument(
        "gripper", default_value="urcap", choices=GRIPPERS, description="sim: a simulated one, for an arm without"
    ),
    DeclareLaunchArgument("calibration", default_value="", description="now robot.calibration of config/cell.yaml"),
    *EXPERIMENT_ARGUMENTS,
]


def value(context, name):
    return LaunchConfiguration(name).perform(context)


def variant(graph, context):
    """The graph with the arm and the gripper of the arguments."""
    return lab_variant(graph, value(context, "arm"), value(context, "gripper"))


def driver_parameters(context, arm):
    """A file of the driver's parameters: those of config/ur_driver.yaml, at the control rate of the arm."""
    yaml = YAML(typ="safe")
    parameters = yaml.load(resource("merton_bringup", "config/ur_driver.yaml"))
    parameters["controller_manager"]["ros__parameters"]["update_rate"] = arm.control_rate_hz
    folder = TemporaryDirectory(prefix="merton_lab_")
    context.extend_globals({"merton_lab": folder})  # the context lives as long as the launch
    file = Path(folder.name, "ur_driver.yaml")
    yaml.dump(parameters, file)
    return file


def robot(context):
    """Further processes for the arm and the gripper."""
    if not value(context, "robot_ip"):
        raise InputError("robot_ip is missing: the address of the arm's controller, such as robot_ip:=192.0.2.10")
    if value(context, "calibration"):  # one place for all that compute with it: gate, tf, driver, MoveIt, exports
        raise InputError("calibration is not an argument any more: name the file in robot.calibration of cell.yaml")
    actions = []
    if value(context, "gripper") == "sim":
        program = [sys.executable, "-m", "merton.simulation.urcap_server", "--address", SIMULATED_GRIPPER]
        actions.append(ExecuteProcess(cmd=program, output="screen"))
    if value(context, "arm") == "rtde":
        return actions + state_publisher(context, use_sim_time=False, gripper_linkage="true")
    require("ur_robot_driver", *(MOVEIT if value(context, "arm") == "moveit" else ()))
    cell = load_cell()
    arm, calibration = cell.arm, cell.robot.calibration
    driver = include(
        "ur_robot_driver",
        "ur_control.launch.py",
        ur_type=arm.ur_type,
        kinematics_params_file=str(cell_file().parent / calibration)
        if calibration
        else [FindPackageShare("ur_description"), f"/{arm.calibration}"],
        robot_ip=LaunchConfiguration("robot_ip"),
        launch_rviz="false",
        initial_joint_controller=names.DRIVER_TRAJECTORY.split("/")[0],
        # ur_driver_node publishes joint_states, with the gripper's beside the arm's
        update_rate_config_file=str(driver_parameters(context, arm)),
        # gripper, cameras and table in robot_description and /tf
        description_file=str(resource("merton_description", "urdf/ur_driver.urdf.xacro")),
    )
    return [*actions, driver]


def generate_launch_description():
    return describe("lab", ARGUMENTS, [robot, experiment], variant)
