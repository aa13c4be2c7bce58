"""The D455s: the real ones, rendered from the cell's state, or played from a recording or a folder of images."""

from __future__ import annotations

import sys
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image

from merton.errors import UnknownNameError
from merton.perception.camera.bag import BagCamera
from merton.perception.camera.bag_topics import topics_of
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.realsense import CameraSettings, devices_of
from merton.simulation.sensor import SENSORS
from merton.world.observation import CameraView
from merton_nodes.cameras import camera_sources as sources
from merton_nodes.cameras.cell_source import CellSource
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.declared_cell import declared_cell
from merton_nodes.ros.runtime import StageNode, run


class CameraNode(StageNode):
    """Publishes colour, camera_info and aligned depth under realsense-ros' names."""

    def __init__(self, **options: Any) -> None:
        super().__init__("camera_node", **options)

    def set_up(self) -> None:
        source = self.parameter(
            "source", "cell", "where frames come from", choices=("cell", "realsense", "bag", "folder")
        )
        cell = declared_cell(self)
        wanted = list(self.parameter("cameras", [""], 'the cameras to play; [""]: those of the bag, or of the cell'))
        folder = self.parameter("folder", "", "with source folder: the directory of images; every camera shows them")
        rate_hz = self.parameter("rate_hz", 5.0, "frames per second of folder and realsense", minimum=0.1, maximum=90.0)
        bag = self.parameter("bag", "", "with source bag: the file of a recording, or the folder of a bag")
        topics = self.parameter(
            "bag_topics", "", "with source bag: images of other names, top=/my/image_raw, top.depth=/my/depth, .."
        )
        width = self.parameter(
            "width", cell.cameras.width, "width of frames of cell and realsense [px]", minimum=64, maximum=1280
        )
        height = self.parameter(
            "height", cell.cameras.height, "height of frames of cell and realsense [px]", minimum=48, maximum=800
        )
        sensor = self.parameter(
            "sensor", "ideal", "with source cell: the sensor to imitate", choices=SENSORS, read_only=False
        )
        realsense = self.realsense_parameters()
        cameras = wanted if any(wanted) else list(cell.camera_names)
        if source == "bag":
            recorded = BagCamera(bag, wanted if any(wanted) else None, topics_of(topics))
            cameras = recorded.cameras
        self.outputs = {
            camera: (
                self.create_publisher(Image, names.color(camera), names.SENSOR_QOS),
                self.create_publisher(CameraInfo, names.color_info(camera), names.SENSOR_QOS),
                self.create_publisher(Image, names.depth(camera), names.SENSOR_QOS),
            )
            for camera in cameras
        }
        self.source: sources.FrameSource
        if source == "cell":
            self.source = CellSource(self, self.publish, cameras, width, height, cell.gripper.linkage, sensor)
        elif source == "folder":
            self.source = sources.FolderSource(self, self.publish, cameras, folder, rate_hz)
        elif source == "bag":
            self.source = sources.BagSource(self, self.publish, recorded)
        else:
            devices, connect_s, options = realsense
            settings = {
                camera: CameraSettings(device, width, height, round(rate_hz), **options)
                for camera, device in devices_of(devices, cameras).items()
            }
            self.source = sources.RealsenseSource(self, self.publish, settings, connect_s)
        self.closing.callback(self.source.close)
        self.add_on_set_parameters_callback(self.on_parameters)
        self.closing.callback(self.remove_on_set_parameters_callback, self.on_parameters)

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Have the cell's cameras imitate another sensor."""
        sensor = next((p.value for p in parameters if p.name == "sensor"), "")
        if sensor and sensor not in SENSORS:
            return SetParametersResult(successful=False, reason=str(UnknownNameError("sensor", sensor, SENSORS)))
        if isinstance(self.source, CellSource) and sensor:
            self.source.imitate(sensor)
        elif sensor not in ("", "ideal"):
            return SetParametersResult(successful=False, reason="only cameras of the simulated cell imitate a sensor")
        return SetParametersResult(successful=True)

    def realsense_parameters(self) -> tuple[str, float, dict[str, float]]:
        """Parameters of RealSense cameras: devices, time to connect [s], further fields of their settings."""
        devices = self.parameter(
            "devices", "", "with source realsense: serial number or recording of each camera, wrist=1234, top=x.db3, .."
        )
        exposure_us = self.parameter(
            "exposure_us", 0.0, "with source realsense: exposure of colour [us]; 0: automatic", minimum=0.0, maximum=1e6
        )
        gain = self.parameter(
            "gain", 0.0, "with source realsense: gain of a fixed exposure; 0: as it is", minimum=0.0, maximum=1e4
        )
        stall_s = self.parameter(
            "stall_s",
            1.0,
            "with source realsense: silence after which a camera is opened anew [s]",
            minimum=0.1,
            maximum=60.0,
        )
        connect_s = self.parameter(
            "connect_timeout_s", 30.0, "with source realsense: time to all first frames [s]", minimum=1.0, maximum=120.0
        )
        return devices, connect_s, {"exposure_us": exposure_us, "gain": gain, "stall_s": stall_s}

    def publish(self, camera: str, frame: CameraFrame | CameraView, stamp_ns: int) -> None:
        """Publish one camera at one instant, as far as it has subscribers: colour, camera_info, and depth if any."""
        optical = names.optical_frame(camera)
        color, info, depth = self.outputs[camera]
        if color.get_subscription_count():
            color.publish(convert.color_message(frame.color, stamp_ns, optical))
        if info.get_subscription_count():
            optics = frame.intrinsics if isinstance(frame, CameraFrame) else frame.lens
            lens = (frame.distortion, frame.distortion_model) if isinstance(frame, CameraFrame) else ()
            info.publish(convert.camera_info_message(optics, stamp_ns, optical, *lens))
        if not depth.get_subscription_count():
            return
        if isinstance(frame, CameraView):
            if frame.depth_m is not None:
                depth.publish(convert.depth_message(frame.depth_m, stamp_ns, optical))
        elif frame.depth_mm is not None:
            depth.publish(convert.millimetre_message(frame.depth_mm, stamp_ns, optical))

    def observe(self) -> None:
        self.source.observe()


def main() -> None:
    sys.exit(run(CameraNode))
