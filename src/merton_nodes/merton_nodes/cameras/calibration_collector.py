"""Collects the input of `merton calibrate solve`: a picture and the arm's joint angles each time Enter is pressed."""

from __future__ import annotations

import argparse
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import CameraInfo, Image, JointState

from merton.calibration import Lens, add_shot
from merton.errors import InfrastructureError, InputError, MertonError
from merton.execution.stillness import is_still
from merton.world import camera_info
from merton.world.observation import check_picture
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import Spinner

TIMEOUT_S = 5.0


class CalibrationCollector(Node):
    """Subscribes to one camera and the arm; saves pictures and poses in `folder`."""

    def __init__(self, camera: str, folder: Path, **options: Any) -> None:
        super().__init__("calibration_collector", **options)
        self.camera, self.folder = camera, folder
        self.changed = threading.Condition()
        self.latest: dict[str, Any] = {}
        self.counts: dict[str, int] = {"images": 0, "optics": 0, "joints": 0}
        for kind, message_type, topic, qos in (
            ("images", Image, names.color(camera), names.LATEST_QOS),
            ("optics", CameraInfo, names.color_info(camera), names.LATEST_QOS),
            ("joints", JointState, names.JOINT_STATES, names.RELIABLE_QOS),
        ):
            subscription = self.create_subscription(message_type, topic, partial(self.on_message, kind), qos)
            if kind == "images":  # whose topic may have another name, by remapping
                self.rectified = camera_info.is_rectified(subscription.topic_name)

    def on_message(self, kind: str, message: Any) -> None:
        with self.changed:
            self.latest[kind] = message
            self.counts[kind] += 1
            self.changed.notify_all()

    def wait_for(self, limit_s: float, **more: int) -> None:
        """Wait for this many more messages of each kind; raises InfrastructureError if they do not arrive in time."""
        goals = {kind: self.counts[kind] + count for kind, count in more.items()}
        if not self.changed.wait_for(lambda: all(self.counts[kind] >= goal for kind, goal in goals.items()), limit_s):
            silent = [kind for kind, goal in goals.items() if self.counts[kind] < goal]
            raise InfrastructureError(f"no {' and no '.join(silent)} of {self.camera} within {limit_s:g} s")

    def save_picture(self, limit_s: float = TIMEOUT_S) -> Path:
        """Save a picture that was taken after now, with the arm at rest; returns its file.

        Raises:
            InfrastructureError: camera or arm are silent.
            InputError: the arm moves, the message is no picture, the camera_info is of another one, or its lens has
                another model than plumb_bob.
        """
        with self.changed:
            self.wait_for(limit_s, joints=1)
            before, _ = convert.joints_of(self.latest["joints"])
            self.wait_for(limit_s, images=2, optics=1)  # the first may have been on its way
            self.wait_for(limit_s, joints=1)
            after, _ = convert.joints_of(self.latest["joints"])
            image, info = self.latest["images"], self.latest["optics"]
        if not is_still(before, after):
            raise InputError("the arm is moving: wait until it rests")
        model, distortion = camera_info.lens_of(info, self.rectified)
        if model != camera_info.PLUMB_BOB:
            raise InputError(
                f"the lens of {self.camera} is {model}, which calibration does not know: use a camera_info of "
                f"{camera_info.PLUMB_BOB}"
            )
        lens = Lens(camera_info.intrinsics_of(info, self.rectified), distortion)
        color = convert.color_array(image)
        check_picture(color, None, lens.intrinsics)
        return add_shot(self.folder, color, ((before + after) / 2).tolist(), lens)


def main() -> None:
    """Entry point: Enter takes a picture, q and Enter ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--camera", default="wrist")
    arguments = parser.parse_args(remove_ros_args(sys.argv)[1:])
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node, spinner = CalibrationCollector(arguments.camera, arguments.folder), Spinner()
    spinner.executor.add_node(node)
    spinner.start("collector")
    print("Bring the arm to rest and press Enter; q and Enter ends.")
    try:
        for line in sys.stdin:
            if line.strip().lower() == "q":
                break
            try:
                print(node.save_picture())
            except MertonError as error:
                print(error, file=sys.stderr)
    except KeyboardInterrupt:
        pass
    finally:
        spinner.end()
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
