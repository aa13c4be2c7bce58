"""The operator's screen: RViz on the cell; rqt with diagnostics, images, plots, services; the page of `merton monitor`.

Beside sim, gazebo or lab.

ros2 launch merton_bringup monitor.launch.py use_sim_time:=true
ros2 launch merton_bringup monitor.launch.py page:=false                    without the page
"""

from importlib.util import find_spec

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from merton.graph.supervisor import enclave
from merton.resources import resource
from merton_nodes.launching import require, rviz

PLUGINS = ("rqt_image_view", "rqt_plot", "rqt_runtime_monitor", "rqt_service_caller")


def screen(context):
    """Both windows, and the page."""
    require("rviz2", "rqt_gui", *PLUGINS)
    use_sim_time = LaunchConfiguration("use_sim_time").perform(context) == "true"
    perspective = str(resource("merton_bringup", "config/rqt/merton.perspective"))
    rqt = Node(
        package="rqt_gui",
        executable="rqt_gui",
        arguments=["--perspective-file", perspective],
        ros_arguments=enclave("operator"),
    )
    return [rviz(use_sim_time=use_sim_time), rqt, *page(context)]


def page(context):
    """The page on http://127.0.0.1:8090/, unless it is not wanted or cannot be served."""
    if LaunchConfiguration("page").perform(context) == "false":
        return []
    if missing := [name for name in ("fastapi", "uvicorn", "websockets") if find_spec(name) is None]:
        return [LogInfo(msg=f"no page: {', '.join(missing)} not installed (requirements/serve.txt)")]
    return [Node(package="merton_nodes", executable="monitor_node", ros_arguments=enclave("monitor_node"))]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    time = DeclareLaunchArgument(
        "use_sim_time", default_value="false", choices=["true", "false"], description="true beside a simulator"
    )
    shown = DeclareLaunchArgument(
        "page", default_value="true", choices=["true", "false"], description="whether to serve the operator's page too"
    )
    return LaunchDescription([time, shown, OpaqueFunction(function=screen)])
