"""A folder of images or a recorded run instead of a camera, through the distortion and the VLM.

ros2 launch merton_bringup replay.launch.py folder:=/data/kitchen distortion:=lens_blur level:=3
ros2 launch merton_bringup replay.launch.py source:=bag bag:=/data/run.mcap
"""

from merton_nodes.ros.launching import describe


def generate_launch_description():
    return describe("replay")
