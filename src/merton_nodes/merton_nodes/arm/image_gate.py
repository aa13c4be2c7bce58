"""The gate of images in arm_node: a chunk that was decided on a bad one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from merton_interfaces.action import ExecuteActions
from merton_interfaces.msg import ImageQuality as QualityMessage

from merton.execution.gate.image_quality import ImageQuality, quality_verdict
from merton.execution.gate.safety import Verdict
from merton_nodes.arm.arm_driver import ArmDriver
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

REMEMBERED_IMAGES = 512
"""Images whose quality is kept: those of 5 s of three cameras at 30 Hz, and more."""


class ImageGate:
    """Listens to the quality of all cameras' images, if the parameter `min_image_quality` of `node` is set.

    Args:
        node: declares the parameter, and gets the subscriptions.
        arm: its waits are used, for as long as its patience lasts: the quality of an image may come after a chunk.
        camera_names: the cameras.
    """

    def __init__(self, node: StageNode, arm: ArmDriver, camera_names: Sequence[str]) -> None:
        self.arm = arm
        meaning = (
            "the worst quality, by quality_node's metric, of the images that a chunk may be decided on; of a metric of "
            "which lower is better the highest value; 0: any"
        )
        self.minimum = node.parameter("min_image_quality", 0.0, meaning, minimum=0.0, maximum=1e6)
        self.known: dict[tuple[str, int], ImageQuality] = {}
        """Frame and stamp [ns] of an image to its quality, the oldest first."""
        self.cameras = {names.optical_frame(camera): camera for camera in camera_names}
        if self.minimum:
            for frame, camera in self.cameras.items():
                callback = partial(self.on_quality, frame)
                node.create_subscription(QualityMessage, names.quality(camera), callback, names.RELIABLE_QOS)

    def on_quality(self, frame: str, message: QualityMessage) -> None:
        """Store a quality; may end a wait. Of two images with one stamp, as of a new distortion, the worse counts."""
        key = frame, convert.nanoseconds_of(message.header.stamp)
        quality, known = convert.quality_of(message), self.known.get(key)
        if known is None or quality.is_worse_than(known.value):
            self.known[key] = quality
        if len(self.known) > REMEMBERED_IMAGES:
            del self.known[next(iter(self.known))]
        self.arm.waits.check()

    async def verdict(self, goal: ExecuteActions.Goal) -> Verdict:
        """Whether a chunk may be carried out, as of `quality_verdict`, once the quality of its images is known."""
        if not self.minimum or goal.blind:
            return Verdict()
        images = [(header.frame_id, convert.nanoseconds_of(header.stamp)) for header in goal.images]

        def is_known() -> bool:
            return self.arm.is_stopped() or all(image in self.known for image in images)

        await self.arm.waits.until(is_known, self.arm.patience_s)
        qualities = {self.cameras.get(image[0], image[0]): self.known.get(image) for image in images}
        return quality_verdict(self.minimum, qualities or None)
