"""The embedded cell and everything above it.

ros2 launch merton_bringup sim.launch.py                                    the graph alone
ros2 launch merton_bringup sim.launch.py experiment:=quickstart.yaml        and an experiment in it
"""

from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from merton_nodes.launching import describe, state_publisher

ARGUMENTS = [
    DeclareLaunchArgument("headless", default_value="true", description="false opens RViz"),
    DeclareLaunchArgument("experiment", default_value="", description="experiment YAML to run; empty: none"),
    DeclareLaunchArgument("runs", default_value="runs", description="directory that takes the run"),
]


def experiment(context):
    """The client that runs the experiment; the launch ends when it does."""
    from pathlib import Path

    from merton.experiment.run import RunDirectory
    from merton.resources import resource

    name = LaunchConfiguration("experiment").perform(context)
    if not name:
        return []
    file = Path(name)
    if not file.exists():
        file = resource("merton_bringup", f"config/experiments/{name}")
    run = RunDirectory.create(Path(LaunchConfiguration("runs").perform(context)), file)
    client = Node(package="merton_nodes", executable="run_experiment", arguments=[str(run.path)], output="screen")
    end = EmitEvent(event=Shutdown(reason=f"the experiment has ended; `merton report {run.path}` writes its report"))
    return [client, RegisterEventHandler(OnProcessExit(target_action=client, on_exit=[end]))]


def rviz(context):
    """RViz on the cell."""
    from merton.resources import resource

    if LaunchConfiguration("headless").perform(context) != "false":
        return []
    config = str(resource("merton_bringup", "config/rviz/merton.rviz"))
    return [Node(package="rviz2", executable="rviz2", arguments=["-d", config], parameters=[{"use_sim_time": True}])]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    actions = [state_publisher(use_sim_time=True), OpaqueFunction(function=rviz), OpaqueFunction(function=experiment)]
    return describe("sim", ARGUMENTS, actions)
