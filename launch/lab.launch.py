"""The lab: UR5 driver and RealSense cameras, and Merton's nodes above them.

ros2 launch merton_bringup lab.launch.py robot_ip:=192.0.2.10 wrist_serial:=_1234 top_serial:=_2345 side_serial:=_3456
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration

from merton_nodes.launching import describe, include, require

CAMERAS = ("wrist", "top", "side")

ARGUMENTS = [
    DeclareLaunchArgument("robot_ip", description="address of the UR5's controller"),
    *(
        DeclareLaunchArgument(
            f"{camera}_serial",
            default_value="''",
            description=f"serial number of the {camera} D455, after an underscore that keeps it a text",
        )
        for camera in CAMERAS
    ),
]


def drivers(context):
    """The arm and the cameras; the driver starts a robot_state_publisher of its own."""
    require("ur_robot_driver", "realsense2_camera")
    arm = include(
        "ur_robot_driver",
        "ur_control.launch.py",
        ur_type="ur5",
        robot_ip=LaunchConfiguration("robot_ip"),
        launch_rviz="false",
        initial_joint_controller="joint_trajectory_controller",
    )
    cameras = [
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
    return [arm, *cameras]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    return describe("lab", ARGUMENTS, [drivers])
