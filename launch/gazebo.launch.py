"""Gazebo Harmonic as the hardware: the world, the robot, its controllers, the bridges; Merton's nodes above it.

ros2 launch merton_bringup gazebo.launch.py headless:=true
ros2 launch merton_bringup gazebo.launch.py headless:=true experiment:=quickstart.yaml
"""

import os
import tempfile
from pathlib import Path

import xacro
from launch.actions import DeclareLaunchArgument, ExecuteProcess, SetEnvironmentVariable
from launch.substitutions import FindExecutable, LaunchConfiguration

from merton.files import resource
from merton.simulation.gazebo import without_mimics
from merton_nodes.cell.gazebo_world import require_service_that_places
from merton_nodes.ros.launching import (
    EXPERIMENT_ARGUMENTS,
    describe,
    experiment,
    killed_with_launch,
    program,
    require,
    required,
    robot_description,
    state_publisher,
    supervised,
)

ARGUMENTS = [
    DeclareLaunchArgument(
        "headless", default_value="true", choices=["true", "false"], description="false opens Gazebo's window"
    ),
    DeclareLaunchArgument(
        "gripper_linkage",
        default_value="false",
        choices=["true", "false"],
        description="true: fingers on the linkage of the real gripper; false: sliding ones, as in the embedded cell",
    ),
    *EXPERIMENT_ARGUMENTS,
]
GRIPPER_CONTROLLERS = {"false": "gripper_controller", "true": "finger_joint_controller"}
"""By `gripper_linkage`."""
SERVICES = [
    "/world/cell/set_pose@ros_gz_interfaces/srv/SetEntityPose",
    "/world/cell/create@ros_gz_interfaces/srv/SpawnEntity",
    "/world/cell/remove@ros_gz_interfaces/srv/DeleteEntity",
    "/world/cell/control@ros_gz_interfaces/srv/ControlWorld",
]


def variant(graph, context):
    """The graph with the gripper of the arguments."""
    linkage = LaunchConfiguration("gripper_linkage").perform(context) == "true"
    know_it = ("gazebo_cell_node", "arm_node", "experiment_node")
    nodes = [node.with_parameters(gripper_linkage=linkage) if node.name in know_it else node for node in graph.nodes]
    return graph.model_copy(update={"nodes": tuple(nodes)})


def description_arguments(context):
    """Arguments of `urdf/cell.urdf.xacro`."""
    controllers = str(resource("merton_bringup", "config/gazebo/controllers.yaml"))
    linkage = LaunchConfiguration("gripper_linkage").perform(context)
    return {"hardware": "gazebo", "controllers": controllers, "gripper_linkage": linkage}


def robot(context):
    """robot_state_publisher: /tf, and the description that gz_ros2_control reads."""
    return state_publisher(context, **description_arguments(context))


def gazebo(world, headless):
    """Gazebo's server with a world, and its window unless `headless`; both reached from this ROS domain alone.

    Ours: ros_gz_sim's launch file starts the server through a shell, which does not pass signals on. At SIGINT and
    SIGTERM the server waits for gz_ros2_control, and that for its controllers to be switched, which needs time to
    pass, or for a description of the robot: neither comes any more.
    """
    partition = ["merton_", LaunchConfiguration("domain")]
    actions = [] if "GZ_PARTITION" in os.environ else [SetEnvironmentVariable("GZ_PARTITION", partition)]
    gz, rendering = FindExecutable(name="gz"), ["--headless-rendering"] if headless else []
    # as ros_gz_sim's: gz_ros2_control lies where the dynamic linker looks
    plugins = os.pathsep.join(os.environ.get(name, "") for name in ("GZ_SIM_SYSTEM_PLUGIN_PATH", "LD_LIBRARY_PATH"))
    server = ExecuteProcess(
        cmd=[gz, "sim", "-s", *rendering, "-r", str(world)],
        name="gazebo",
        additional_env={"GZ_SIM_SYSTEM_PLUGIN_PATH": plugins},
        output="screen",
        **killed_with_launch(),
    )
    actions += supervised(server, "Gazebo")
    if not headless:
        window = ExecuteProcess(cmd=[gz, "sim", "-g"], name="gazebo_window", output="screen")
        actions += supervised(window, "Gazebo's window", optional=True)
    return actions


def simulator(context):
    """Gazebo with the world, the robot in it, its controllers, and the bridge to ROS."""
    require(
        "ros_gz_sim",
        "ros_gz_bridge",
        "gz_ros2_control",
        "controller_manager",
        "joint_trajectory_controller",
        "robot_state_publisher",
    )
    require_service_that_places()
    folder = tempfile.TemporaryDirectory(prefix="merton_gazebo_")
    context.extend_globals({"merton_gazebo": folder})  # the context lives as long as the launch
    world, model = Path(folder.name, "cell.sdf"), Path(folder.name, "robot.urdf")
    source = resource("merton_description", "urdf/worlds/cell.sdf.xacro")
    world.write_text(xacro.process_file(str(source)).toprettyxml(indent="  "), encoding="utf-8")
    model.write_text(without_mimics(robot_description(**description_arguments(context))), encoding="utf-8")
    create = program("ros_gz_sim", "create", arguments=["-file", str(model), "-name", "cell"])
    controllers = ["arm_controller", GRIPPER_CONTROLLERS[LaunchConfiguration("gripper_linkage").perform(context)]]
    patience = ("controller-manager", "service-call", "switch")  # default: 5 to 10 s, too few for a busy machine
    timeouts = [text for what in patience for text in (f"--{what}-timeout", "120")]
    spawner = program("controller_manager", "spawner", arguments=[*controllers, *timeouts])
    return [
        *gazebo(world, LaunchConfiguration("headless").perform(context) == "true"),
        *required(create, "ros_gz_sim's create, which puts the robot into Gazebo,", required(spawner, "the spawner")),
        program(
            "ros_gz_bridge",
            "parameter_bridge",
            arguments=SERVICES,
            parameters=[{"config_file": str(resource("merton_bringup", "config/gazebo/bridge.yaml"))}],
        ),
    ]


def generate_launch_description():
    return describe("gazebo", ARGUMENTS, [simulator, robot, experiment], variant)
