"""The lab: UR5 driver and RealSense cameras, and Merton's nodes above them.

ros2 launch merton_bringup lab.launch.py robot_ip:=192.0.2.10 wrist_serial:=... top_serial:=... side_serial:=...
"""

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare
from merton_nodes.launching import describe

CAMERAS = ("wrist", "top", "side")


def include(package, file, **arguments):
    """Another package's launch file; looked for when the launch runs, not when it is constructed."""
    path = PathJoinSubstitution([FindPackageShare(package), "launch", file])
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments.items())


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    arguments = [
        DeclareLaunchArgument("robot_ip", description="address of the UR5's controller"),
        *(
            DeclareLaunchArgument(f"{camera}_serial", default_value="''", description=f"serial number of the {camera} D455")
            for camera in CAMERAS
        ),
    ]
    drivers = [
        include(
            "ur_robot_driver",
            "ur_control.launch.py",
            ur_type="ur5",
            robot_ip=LaunchConfiguration("robot_ip"),
            launch_rviz="false",
            initial_joint_controller="joint_trajectory_controller",
        )
    ]
    drivers += [
        include(
            "realsense2_camera",
            "rs_launch.py",
            camera_name=camera,
            camera_namespace="camera",
            serial_no=LaunchConfiguration(f"{camera}_serial"),
            **{"align_depth.enable": "true"},
        )
        for camera in CAMERAS
    ]
    return describe("lab", arguments, drivers)
