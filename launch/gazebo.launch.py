"""Gazebo Harmonic as the hardware: the world, the robot, its controllers, the bridges; Merton's nodes above it.

ros2 launch merton_bringup gazebo.launch.py headless:=true
ros2 launch merton_bringup gazebo.launch.py headless:=true experiment:=gazebo_quickstart.yaml
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
    graph_node,
    killed_with_launch,
    program,
    renewed,
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
NODE = "gazebo_cell_node"
"""Starts anew together with Gazebo's server."""
LONGEST_S, STEP_S = 100_000, 0.002
"""More simulated time than any Gazebo lives, and one step of its physics."""
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


def server(world, headless, number):
    """Gazebo's server with a world, for the first time or once more.

    Its time begins after all that came before, so that no message of a Gazebo that hung is ever the newest. The first
    step ends at a multiple of the frame period, as the poses of objects come at multiples of their period after it.

    Ours: ros_gz_sim's launch file starts the server through a shell, which does not pass signals on. At SIGINT and
    SIGTERM the server waits for gz_ros2_control, and that for its controllers to be switched, which needs time to
    pass, or for a description of the robot: neither comes any more.
    """
    rendering = ["--headless-rendering"] if headless else []
    # as ros_gz_sim's: gz_ros2_control lies where the dynamic linker looks
    plugins = os.pathsep.join(os.environ.get(name, "") for name in ("GZ_SIM_SYSTEM_PLUGIN_PATH", "LD_LIBRARY_PATH"))
    begin = ["--initial-sim-time", str(number * LONGEST_S - STEP_S)] if number else []
    return ExecuteProcess(
        cmd=[FindExecutable(name="gz"), "sim", "-s", *rendering, *begin, "-r", str(world)],
        name="gazebo",
        additional_env={"GZ_SIM_SYSTEM_PLUGIN_PATH": plugins},
        output="screen",
        **killed_with_launch(),
    )


def window():
    """Gazebo's window."""
    process = ExecuteProcess(cmd=[FindExecutable(name="gz"), "sim", "-g"], name="gazebo_window", output="screen")
    return supervised(process, "Gazebo's window", optional=True)


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
    controllers = ["arm_controller", GRIPPER_CONTROLLERS[LaunchConfiguration("gripper_linkage").perform(context)]]
    patience = ("controller-manager", "service-call", "switch")  # default: 5 to 10 s, too few for a busy machine
    timeouts = [text for what in patience for text in (f"--{what}-timeout", "120")]
    headless = LaunchConfiguration("headless").perform(context) == "true"
    partition = ["merton_", LaunchConfiguration("domain")]  # reached from this ROS domain alone

    def start(number):
        create = program("ros_gz_sim", "create", arguments=["-file", str(model), "-name", "cell"])
        spawner = program("controller_manager", "spawner", arguments=[*controllers, *timeouts])
        put = required(
            create, "ros_gz_sim's create, which puts the robot into Gazebo,", required(spawner, "the spawner")
        )
        return graph_node(NODE, context), server(world, headless, number), put

    return [
        *([] if "GZ_PARTITION" in os.environ else [SetEnvironmentVariable("GZ_PARTITION", partition)]),
        *renewed(start, "Gazebo"),
        *([] if headless else window()),
        program(
            "ros_gz_bridge",
            "parameter_bridge",
            arguments=SERVICES,
            parameters=[{"config_file": str(resource("merton_bringup", "config/gazebo/bridge.yaml"))}],
        ),
    ]


def generate_launch_description():
    return describe("gazebo", ARGUMENTS, [simulator, robot, experiment], variant, apart=[NODE])
