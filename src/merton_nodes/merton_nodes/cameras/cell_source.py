"""The simulated cell as a source of camera_node's frames."""

from __future__ import annotations

from merton_interfaces.msg import CellState, FrameRequest
from merton_interfaces.srv import SegmentThings

from merton.errors import ErrorCode, MertonError
from merton.simulation.sensor import SENSORS
from merton.world.observation import CameraView
from merton_nodes.cameras.camera_sources import FrameSource, PublishFrame
from merton_nodes.cell.messages import arm_state_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

TRIAL_NODES = ("experiment_node", names.DISTORTION_NODE, names.QUALITY_NODE)
"""Subscribers that need the frames of a simulated cell only where the first of them requests some; all others view."""
VIEWERS_PERIOD_S = 0.2
"""Period of the search for viewers [s]: how late the first frame may be for one."""


class CellSource(FrameSource):
    """Views of the simulated cell, rendered from its state: those that are requested at rest, and those with a viewer.

    A state is rendered once for each camera; repeated, its views are published again to viewers. A request for a past
    state takes the place of the rest: viewers see what the models see, until the arm moves.
    """

    def __init__(
        self,
        node: StageNode,
        publish: PublishFrame,
        cameras: list[str],
        width: int,
        height: int,
        linkage: bool = False,
        sensor: str = "ideal",
    ) -> None:
        from merton.simulation.cameras import SceneCameras  # needs OpenGL, which the other sources do not

        self.node, self.publish, self.cameras = node, publish, cameras
        self.scene_cameras = SceneCameras(width, height, linkage=linkage)
        self.imitate(sensor)
        self.state: CellState | None = None
        """The newest state."""
        self.shown: CellState | None = None
        """The state that is rendered: the newest, or a past one that was requested since."""
        self.request: FrameRequest | None = None
        """The newest request that has no answer yet."""
        self.answered_ns = -1
        """The stamp of the last request that was answered in this scene [ns]."""
        self.viewed: tuple[set[str], set[str]] = set(), set()
        """Cameras with a viewer of colour, and of depth."""
        node.create_subscription(CellState, names.CELL_STATE, self.on_state, names.LATEST_QOS)
        node.create_subscription(FrameRequest, names.FRAME_REQUEST, self.on_request, names.RELIABLE_QOS)
        node.create_service(SegmentThings, names.SEGMENT_THINGS, self.on_segment)
        node.create_timer_s(VIEWERS_PERIOD_S, self.find_viewers)

    def on_state(self, state: CellState) -> None:
        """Render a new state as far as it is viewed or requested; a repeated one is published again."""
        if not self.node.active:
            return
        last = self.state
        if last is None or last.scene != state.scene:
            self.scene_cameras.begin_scene()
            self.answered_ns = -1
        if last is None or not _same_instant(last, state):
            self.turn_to(state)
        self.state = state
        color, depth = self.requested()
        self.show(color | self.viewed[0], depth | self.viewed[1])
        self.keep_exposures(color | depth)

    def on_request(self, request: FrameRequest) -> None:
        """Answer a request, now or at the next rest."""
        self.request = request
        if self.node.active:
            color, depth = self.requested()
            self.show(color, depth)
            self.keep_exposures(color | depth)

    def on_segment(self, request: SegmentThings.Request, response: SegmentThings.Response) -> SegmentThings.Response:
        """Service: which pixels of a camera's frame of a state show a thing of the instruction."""
        state, camera = request.state, request.camera
        try:
            things = self.scene_cameras.things(state.task, state.seed, state.qpos, camera)
        except MertonError as error:
            response.error_code, response.error_msg = ErrorCode.INFRASTRUCTURE, str(error)
            return response
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        response.things = convert.mask_message(things, stamp_ns, names.optical_frame(camera))
        return response

    def turn_to(self, state: CellState) -> None:
        """Render this state from now on."""
        self.shown = state
        self.views.clear()

    def imitate(self, sensor: str) -> None:
        """Deliver pictures of this sensor from now on."""
        self.views: dict[str, CameraView] = {}
        """Camera to its view of the shown state, where it has been rendered."""
        self.scene_cameras.imitate(SENSORS[sensor])

    def keep_exposures(self, cameras: set[str]) -> None:
        """Keep the exposure of a trial's pictures; a viewer's do not count, so that a trial has no need of them."""
        for camera in cameras:
            self.scene_cameras.keep_exposure(camera)

    def requested(self) -> tuple[set[str], set[str]]:
        """The cameras, for colour and for depth, of a request whose instant has come: it counts as answered.

        From now on the state that it asks for is shown. One for a past state is answered after the rest as well, since
        its pictures count for the exposure; but once, and in its own scene alone.
        """
        state, request = self.state, self.request
        if state is None or request is None or not (state.at_rest or request.past.qpos):
            return set(), set()
        rest_ns, last_ns = convert.nanoseconds_of(request.header.stamp), self.answered_ns
        if rest_ns > convert.nanoseconds_of(state.header.stamp):
            return set(), set()
        self.request, self.answered_ns = None, rest_ns
        wanted = request.past if request.past.qpos else state
        if self.shown is None or not _same_instant(self.shown, wanted):
            if wanted.scene != state.scene or (request.past.qpos and rest_ns == last_ns):
                return set(), set()
            self.turn_to(wanted)
        return set(request.color), set(request.depth)

    def show(self, color: set[str], depth: set[str]) -> None:
        """Publish cameras with the state's stamp, those of `depth` with their depth; render those that are not yet."""
        for camera in self.cameras:
            if camera in color | depth:
                assert self.shown is not None
                self.publish(
                    camera, self.view(camera, camera in depth), convert.nanoseconds_of(self.shown.header.stamp)
                )

    def view(self, camera: str, depth: bool) -> CameraView:
        """A view of the shown state, rendered unless it has been."""
        state, view = self.shown, self.views.get(camera)
        assert state is not None
        if view is None or (depth and view.depth_m is None):
            stamp_ns = convert.nanoseconds_of(state.header.stamp)
            _, speeds = arm_state_of(state.joints)
            view = self.scene_cameras.render(
                state.task, state.seed, state.qpos, camera, stamp_ns, depth=depth, joint_velocities=speeds
            )
            self.views[camera] = view
            self.node.counters["frames rendered"] += 1
            self.node.counters["depth images rendered"] += depth
        return view

    def close(self) -> None:
        self.scene_cameras.close()

    def find_viewers(self) -> None:
        """Find the cameras that other nodes than those of a trial look at, as they are or distorted."""

        def has_viewer(*topics: str) -> bool:
            ends = (end for topic in topics for end in self.node.get_subscriptions_info_by_topic(topic))
            return any(end.node_name not in TRIAL_NODES for end in ends)

        of_color = (names.color, names.color_info, names.distorted, names.distortion_info)
        self.viewed = (
            {camera for camera in self.cameras if has_viewer(*(topic(camera) for topic in of_color))},
            {camera for camera in self.cameras if has_viewer(names.depth(camera), names.distorted_depth(camera))},
        )


def _same_instant(one: CellState, other: CellState) -> bool:
    return (one.scene, one.header.stamp) == (other.scene, other.header.stamp)
