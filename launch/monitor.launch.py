"""The operator's screen: RViz on the cell; rqt with diagnostics, images, plots, services; the page of `merton monitor`.

Beside sim, gazebo or lab. Missing programs are named and left out.

ros2 launch merton_bringup monitor.launch.py use_sim_time:=true
ros2 launch merton_bringup monitor.launch.py page:=false                    without the page
"""

from importlib.util import find_spec

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from merton.errors import MissingDependencyError
from merton.files import resource
from merton.graph.supervisor import enclave
from merton_nodes.ros.launching import end_with_launch, missing, program, rviz

PLUGINS = ("rqt_image_view", "rqt_plot", "rqt_runtime_monitor", "rqt_service_caller")


def screen(context):
    """Both windows and the page, as far as they are installed; raises MissingDependencyError if nothing is."""
    use_sim_time = LaunchConfiguration("use_sim_time").perform(context) == "true"
    wanted = [
        ("RViz", missing("rviz2"), lambda: rviz(use_sim_time=use_sim_time)),
        ("rqt", missing("rqt_gui", *PLUGINS), rqt),
    ]
    if LaunchConfiguration("page").perform(context) == "true":
        absent = ", ".join(name for name in ("fastapi", "uvicorn", "websockets") if find_spec(name) is None)
        wanted.append(("page", absent and f"not installed: {absent} (the extra serve)", page))
    without = [f"no {name}: {why}" for name, why, _ in wanted if why]
    if len(without) == len(wanted):
        raise MissingDependencyError("; ".join(without))
    return [LogInfo(msg=sentence) for sentence in without] + [make() for _, why, make in wanted if not why]


def rqt():
    """rqt with Merton's perspective."""
    perspective = str(resource("merton_bringup", "config/rqt/merton.perspective"))
    return program(
        "rqt_gui", "rqt_gui", arguments=["--perspective-file", perspective], ros_arguments=enclave("operator")
    )


def page():
    """The page; its node logs the address."""
    return program("merton_nodes", "monitor_node", ros_arguments=enclave("monitor_node"), output="screen")


def generate_launch_description():
    time = DeclareLaunchArgument(
        "use_sim_time", default_value="false", choices=["true", "false"], description="true beside a simulator"
    )
    shown = DeclareLaunchArgument(
        "page", default_value="true", choices=["true", "false"], description="whether to serve the operator's page too"
    )
    return LaunchDescription([time, shown, end_with_launch(), OpaqueFunction(function=screen)])
