"""gazebo_cell_node over real ROS 2, on a stand-in for Gazebo and its controllers that speaks their topics.

Only the two services of the world are called past ROS: their types come with a full installation, and have a test of
their own there.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, Vector3
from merton_interfaces.msg import CellState, SafetyState
from merton_interfaces.srv import ResetCell
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import MissingDependencyError
from merton.execution.kinematics import base_from_tcp
from merton.simulation.gazebo import FRAME_PERIOD_S, Touch, lifted, model_name, moving_models, parked, places
from merton.simulation.gazebo_props import movable_props, prop_sdf
from merton.simulation.model import MATS, OBJECTS
from merton.simulation.scene import make_scene
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, CellConfig, load_cell
from merton.world.geometry import Matrix, transform
from merton.world.linkage import joint_rad
from merton.world.tasks import PAD_LINKS
from merton_nodes.cell.gazebo_cell_node import GazeboCellNode
from merton_nodes.cell.gazebo_world import GazeboWorld, require_service_that_places
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Permits, Probe, trigger, up

pytestmark = pytest.mark.timeout(120)
NO_GAZEBO = "ros_gz_interfaces comes with a ROS installation, not with the wheels"
STEP_NS = 10_000_000
CELL = load_cell()
CAMERAS = ("wrist", "top", "side")


class StandIn:
    """Gazebo, its controllers and the bridge: time passes, and joints move, only on request."""

    def __init__(self, node: Node, cell: CellConfig, on_touches: Any) -> None:
        self.on_touches = on_touches
        self.now_ns = self.goal_ns = 10_000_000_000
        self.joints = CELL.home_joints + 0.2
        self.target, self.arrival_ns = self.joints, 0
        self.finger = 0.0
        self.poses: dict[str, Matrix] = {}
        self.controllers_active = True
        self.holds: list[JointTrajectory] = []
        self.states = node.create_publisher(JointState, names.GAZEBO_JOINT_STATES, names.RELIABLE_QOS)
        self.props: list[str] = []
        self.removed_ns = 0
        self.pose_publishers = {
            model: node.create_publisher(PoseStamped, names.gazebo_pose(model), names.RELIABLE_QOS)
            for model in (*moving_models(), *movable_props())
        }
        self.frames_ns: list[int] = []
        self.cameras_answer = True
        infos = {camera: names.color_info(camera) for camera in CAMERAS}
        self.infos = {key: node.create_publisher(CameraInfo, name, names.RELIABLE_QOS) for key, name in infos.items()}
        self.renderer = node.create_publisher(CameraInfo, names.GAZEBO_RENDERER, names.RELIABLE_QOS)
        self.renders = True
        self.put_ns = 0
        node.create_subscription(JointTrajectory, names.GAZEBO_ARM, self.on_trajectory, names.RELIABLE_QOS)
        node.create_subscription(JointTrajectory, names.GAZEBO_FINGERS, self.on_fingers, names.RELIABLE_QOS)
        node.create_subscription(JointTrajectory, names.GAZEBO_LINKAGE, self.on_linkage, names.RELIABLE_QOS)
        self.finger_joint: list[float] = []
        self.waiting: list[Touch] = []
        self.timer = node.create_timer(0.001, self.step)

    def ready(self) -> bool:
        return True

    def take_touches(self) -> None:
        """Contacts that have arrived, but whose turn in the executor has not come."""
        if self.waiting:
            self.on_touches(self.waiting, self.now_ns)

    def trigger_cameras(self) -> None:
        """As Gazebo, which does so while time stands, too."""
        self.frames_ns.append(self.now_ns)
        for camera in CAMERAS if self.cameras_answer else CAMERAS[:-1]:
            self.infos[camera].publish(CameraInfo(header=convert.header(self.now_ns, "")))

    def place(self, name: str, base_from_model: Matrix) -> Future:
        self.poses[name] = base_from_model
        self.put_ns = min(self.put_ns or self.now_ns, self.now_ns)
        return self.answer()

    def add(self, name: str, base_from_model: Matrix) -> Future:
        assert model_name(name) not in map(model_name, self.props), "Gazebo has one of that name"
        assert self.now_ns > self.removed_ns, "it is still there until the next step"
        self.props.append(name)
        return self.place(name, base_from_model)

    def remove(self, name: str) -> Future:
        assert name not in lifted([name]) or self.poses[name][2, 3] > 100, "Gazebo ends if it touches another thing"
        self.removed_ns = self.now_ns
        self.props.remove(name)
        del self.poses[name]
        return self.answer()

    def run_to(self, stamp_ns: int) -> Future:
        assert stamp_ns > self.now_ns, "Gazebo would run without end"
        self.goal_ns = stamp_ns
        return self.answer()

    def answer(self) -> Future:
        future: Future = Future()
        future.set_result(types.SimpleNamespace(success=True))
        return future

    def on_trajectory(self, message: JointTrajectory) -> None:
        """As joint_trajectory_controller, which refuses a trajectory without points."""
        if message.points and self.controllers_active:
            self.target = np.array(message.points[-1].positions)
            self.arrival_ns = self.now_ns + convert.nanoseconds_of(message.points[-1].time_from_start)
            self.holds.append(message)

    def on_fingers(self, message: JointTrajectory) -> None:
        (point,) = message.points
        self.finger, self.finger_s = point.positions[0], convert.nanoseconds_of(point.time_from_start) / 1e9

    def on_linkage(self, message: JointTrajectory) -> None:
        self.finger_joint += message.points[-1].positions

    def step(self) -> None:
        for _ in range(25):
            if self.now_ns < self.goal_ns:
                self.advance()
        if self.now_ns == self.goal_ns:  # as Gazebo's JointStatePublisher while time stands
            self.publish_joints()

    def advance(self) -> None:
        self.now_ns += STEP_NS
        left = max(self.arrival_ns - self.now_ns, 0) // STEP_NS
        self.joints = self.joints + (self.target - self.joints) / (left + 1)
        self.publish()

    def publish(self) -> None:
        for name, pose in self.poses.items():
            if model_name(name) in self.pose_publishers:
                self.pose_publishers[model_name(name)].publish(convert.pose_stamped(pose, self.now_ns))
        self.publish_joints()
        if self.renders:
            self.renderer.publish(CameraInfo(header=convert.header(self.now_ns, "")))

    def publish_joints(self) -> None:
        finger = [self.finger, self.finger]
        self.states.publish(
            JointState(
                header=convert.header(self.now_ns, ""),
                name=[*FINGER_JOINTS, *ARM_JOINTS],
                position=[*finger, *self.joints.tolist()],
            )
        )


class Bench:
    """The node on its stand-in, and its messages."""

    def __init__(self, ros: Any, probe: Probe, **parameters: Any) -> None:
        self.ros, self.probe = ros, probe
        parameters = {"idle_period_s": 0.5, "patience_s": 20.0, **parameters}
        self.node = up(ros, lambda **options: GazeboCellNode(StandIn, **options), **parameters)
        self.states = probe.listen(CellState, names.CELL_STATE, names.RELIABLE_QOS)
        self.safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.permits = Permits(probe)
        self.trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        ros.until(lambda: self.safety and self.node.joints_rad is not None)
        ros.until(lambda: self.trajectories.get_subscription_count() == 1)

    @property
    def world(self) -> StandIn:
        return self.node.world

    def reset(self, task: str, seed: int) -> ResetCell.Response:
        return self.ros.call(self.probe, ResetCell, names.CELL_RESET, ResetCell.Request(task=task, seed=seed))

    def move(self, goal: np.ndarray, duration_s: float) -> None:
        message = JointTrajectory(joint_names=list(ARM_JOINTS))
        for time_s, joints in ((0.0, self.world.joints), (duration_s, goal)):
            message.points.append(
                JointTrajectoryPoint(
                    positions=joints.tolist(), velocities=[0.0] * 6, time_from_start=convert.duration_message(time_s)
                )
            )
        self.trajectories.publish(self.permits.given(message))


@pytest.fixture
def bench(ros: Any, probe: Probe, request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(ros, probe, **getattr(request, "param", {}))
    yield bench
    bench.world.timer.cancel()  # an executor that is never idle may not end cleanly: let it come to rest
    counts = [-1]

    def quiet() -> bool:
        counts.append(len(bench.joints))
        return len(counts) > 20 and len(set(counts[-20:])) == 1

    ros.until(quiet)


def test_a_reset_makes_the_scene_and_time_stands_still_at_a_frame(ros: Any, bench: Bench) -> None:
    response = bench.reset("place", 3)
    assert response.error_code == 0, response.error_msg
    scene, state = make_scene("place", 3), response.state
    assert (state.task, state.seed, state.scene, state.instruction) == ("place", 3, 1, scene.command.instruction)
    assert state.at_rest
    assert not state.success
    assert {item.name for item in state.objects} == {*scene.placements, *scene.mats}
    standing = places(scene, CELL)
    for item in state.objects:
        np.testing.assert_allclose(convert.matrix_of(item.pose), standing[item.name], atol=1e-9)
    waiting = {name: pose for name, pose in bench.world.poses.items() if name not in standing}
    assert set(waiting) == {*OBJECTS, *MATS} - set(standing)
    for name, pose in waiting.items():
        np.testing.assert_array_equal(pose, parked(CELL)[name])
    np.testing.assert_allclose(bench.world.joints, CELL.home_joints, atol=1e-6)
    assert bench.world.finger == CELL.gripper.stroke / 2
    stamp_ns = convert.nanoseconds_of(state.header.stamp)
    assert stamp_ns % round(FRAME_PERIOD_S * 1e9) == 0
    frames_ns = [at_ns for at_ns in bench.world.frames_ns if at_ns > bench.world.put_ns]
    frame_ns = round(FRAME_PERIOD_S * 1e9)
    assert frames_ns[:2] == [stamp_ns - frame_ns, stamp_ns], "the very first frame is black: it is not the scene's"
    # a subscriber that comes late gets another frame, as the node lets no time pass but whole frames
    ros.until(lambda: bench.states and convert.nanoseconds_of(bench.states[-1].header.stamp) > stamp_ns)
    later = bench.states[-1]
    assert later.at_rest
    later_ns = convert.nanoseconds_of(later.header.stamp)
    # another topic: on a busy machine they come after the state
    ros.until(lambda: bench.joints and convert.nanoseconds_of(bench.joints[-1].header.stamp) >= later_ns)
    stamps = [convert.nanoseconds_of(joints.header.stamp) for joints in bench.joints]
    assert later_ns in stamps
    assert len(stamps) == len(set(stamps)), "Gazebo repeats its last joint states while time stands"


def test_a_reset_that_is_asked_for_again_is_carried_out_once(ros: Any, bench: Bench) -> None:
    """On a busy machine its answer takes longer than its client waits before it asks again, and the trial goes on."""
    client = bench.probe.create_client(ResetCell, names.CELL_RESET)
    ros.until(client.service_is_ready)
    request = ResetCell.Request(task="reach", seed=0, id="first")
    answers = [ros.result(future) for future in [client.call_async(request) for _ in range(2)]]
    answers.append(ros.result(client.call_async(request)))
    assert [(answer.error_code, answer.state.scene) for answer in answers] == [(0, 1)] * 3
    assert ros.result(client.call_async(ResetCell.Request(task="reach", seed=0, id="second"))).state.scene == 2
    assert bench.reset("reach", 0).state.scene == 3


def test_props_come_with_their_scene_and_go_before_the_next(ros: Any, bench: Bench) -> None:
    for seed in (3, 4):
        response = bench.reset("insert", seed)
        assert response.error_code == 0, response.error_msg
        scene = make_scene("insert", seed)
        assert set(bench.world.props) == {scene.command.object, scene.command.target}
        standing = places(scene, CELL)
        assert {item.name for item in response.state.objects} == {*scene.placements}
        for item in response.state.objects:
            np.testing.assert_allclose(convert.matrix_of(item.pose), standing[item.name], atol=1e-9)
    assert bench.reset("reach", 0).error_code == 0
    assert not bench.world.props
    assert "peg" not in {item.name for item in bench.node.judge.scene_state().objects}


def test_a_motion_takes_its_time_and_success_is_judged(ros: Any, bench: Bench) -> None:
    state = bench.reset("reach", 0).state
    goal = next(item for item in state.objects if item.name == make_scene("reach", 0).command.object)
    count = len(bench.states)
    begin_ns = convert.nanoseconds_of(state.header.stamp)
    bench.move(CELL.home_joints + 0.05, 0.7)
    ros.until(lambda: bench.states[count:] and bench.world.now_ns >= begin_ns + 700_000_000 and bench.node.time.stands)
    np.testing.assert_allclose(bench.world.joints, CELL.home_joints + 0.05, atol=1e-9)
    tcp_m = base_from_tcp(bench.world.joints, CELL)[:3, 3]
    reached = np.linalg.norm(tcp_m - convert.matrix_of(goal.pose)[:3, 3] - (0, 0, 0.1)) <= 0.03
    last = ros.until(lambda: bench.states[-1] if bench.states[-1].header.stamp.sec >= 10 else None)
    assert last.success == reached


def test_time_does_not_go_on_before_every_camera_has_its_frame(ros: Any, bench: Bench) -> None:
    """Gazebo would hang."""
    bench.reset("reach", 0)
    ros.until(lambda: not bench.node.time.held)
    bench.world.cameras_answer = False
    begin, asked = bench.world.joints.copy(), len(bench.world.frames_ns)
    bench.move(begin + 0.05, 0.3)
    ros.until(lambda: len(bench.world.frames_ns) > asked and bench.node.time.held)
    since_ns = bench.world.now_ns
    bench.move(begin, 0.3)
    ros.until(lambda: not bench.node.time.stands)
    assert bench.world.now_ns == bench.world.goal_ns == since_ns == bench.world.frames_ns[-1]
    bench.world.cameras_answer = True
    bench.world.trigger_cameras()
    ros.until(lambda: bench.node.time.stands and bench.world.now_ns > since_ns)
    np.testing.assert_allclose(bench.world.joints, begin, atol=1e-9)


def test_no_frame_is_asked_for_before_the_renderer_has_got_there(ros: Any, bench: Bench) -> None:
    """It would be of an earlier instant, and the node would wait for the others without end."""
    bench.reset("reach", 0)
    bench.world.renders = False
    asked = len(bench.world.frames_ns)
    goal = bench.world.joints + 0.05
    bench.move(goal, 0.3)
    ros.until(lambda: np.allclose(bench.world.joints, goal) and bench.world.now_ns == bench.world.goal_ns)
    ros.until(lambda: bench.node.time.stamp_ns == bench.world.now_ns)
    assert not bench.node.time.stands
    assert all(at_ns < bench.world.now_ns for at_ns in bench.world.frames_ns[asked:])
    bench.world.renders = True
    bench.world.publish()
    ros.until(lambda: bench.node.time.stands and bench.world.now_ns in bench.world.frames_ns)


def test_contacts_that_have_arrived_count_before_success_is_judged(ros: Any, bench: Bench) -> None:
    """While a thing is held there are more messages of contacts than of joints: they wait behind the last of these."""
    bench.reset("pick", 0)
    name = make_scene("pick", 0).command.object
    bench.world.poses[name] = transform((0, 0, 0.1)) @ bench.world.poses[name]
    bench.world.waiting = [Touch(pad, model_name(name), 20.0) for pad in PAD_LINKS]
    seen = len(bench.states)
    bench.move(CELL.home_joints + 0.01, 0.3)
    state = ros.until(lambda: next((state for state in bench.states[seen:] if state.at_rest), None))
    assert state.success


def test_fingers_move_at_their_speed(ros: Any, bench: Bench) -> None:
    """Not at the limit of the physics engine: DART does not drive a joint at its greatest speed."""
    bench.reset("reach", 0)
    open_m = bench.world.finger
    fingers = bench.probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
    ros.until(lambda: fingers.get_subscription_count() == 1)
    for target_m in (0.01, open_m):
        away_m, since_ns = 2 * abs(target_m - bench.world.finger), bench.world.now_ns
        fingers.publish(bench.permits.given(Float64MultiArray(data=[target_m])))
        ros.until(lambda target_m=target_m: bench.world.finger == target_m and bench.node.time.stands)
        assert bench.world.finger_s == pytest.approx(away_m / CELL.gripper.max_speed)
        assert bench.world.now_ns - since_ns >= bench.world.finger_s * 1e9, "time has passed for it"


def test_contact_with_the_table_stops_the_arm_until_it_is_released(ros: Any, probe: Probe, bench: Bench) -> None:
    bench.reset("reach", 0)
    start = bench.world.joints.copy()
    bench.move(start + 1.0, 5.0)
    ros.until(lambda: np.abs(bench.world.joints - start).max() > 0.01)
    bench.world.on_touches([Touch("gripper_left_pad", "table", 3.0)], bench.world.now_ns)
    assert not bench.node.touches.stopped, "fingers may press a little"
    bench.world.on_touches([Touch("wrist_3_link", "table", 7.0)], bench.world.now_ns)
    stop = ros.until(lambda: next((s for s in bench.safety if s.mode == SafetyState.COLLISION_STOP), None))
    assert (stop.link_a, stop.link_b, stop.force) == ("wrist_3_link", "table", 7.0)
    ros.until(lambda: np.array_equal(bench.world.joints, bench.world.target))
    held = bench.world.joints.copy()
    assert np.abs(held - start).max() < 0.9, "it stopped well before the end"
    seen = len(bench.world.holds)
    bench.move(start, 0.5)  # a command meanwhile is answered by another hold
    ros.until(lambda: len(bench.world.holds) == seen + 1)
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.safety[-1].mode == SafetyState.NORMAL)
    bench.move(start, 0.5)
    ros.until(lambda: np.allclose(bench.world.joints, start, atol=1e-6))


def test_an_empty_trajectory_halts_though_the_controller_would_not(ros: Any, bench: Bench) -> None:
    bench.reset("reach", 0)
    start = bench.world.joints.copy()
    bench.move(start + 1.0, 5.0)
    ros.until(lambda: np.abs(bench.world.joints - start).max() > 0.01)
    bench.trajectories.publish(JointTrajectory())
    ros.until(lambda: np.array_equal(bench.world.joints, bench.world.target))
    assert np.abs(bench.world.joints - start).max() < 0.9
    assert bench.safety[-1].mode == SafetyState.NORMAL, "a stop on request latches in the stop node, not here"


def test_a_command_past_the_gate_reaches_no_controller(ros: Any, probe: Probe, bench: Bench) -> None:
    bench.reset("reach", 0)
    ros.until(lambda: bench.node.guarded.rule.running)
    fingers = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
    ros.until(lambda: fingers.get_subscription_count() == 1)
    start, open_m = bench.world.joints.copy(), bench.world.finger
    bench.permits.say(SafetyState.EMERGENCY_STOP)
    bench.move(start + 0.15, 0.5)
    fingers.publish(bench.permits.given(Float64MultiArray(data=[0.01])))
    for topic in (names.TRAJECTORY, names.GRIPPER):
        ros.until(lambda key=f"dropped commands on {topic}: stopped": bench.node.counters[key] == 1)
    ros.until(lambda: bench.world.finger == open_m and bench.node.time.stands)
    np.testing.assert_array_equal(bench.world.joints, start)
    np.testing.assert_array_equal(bench.world.target, start)


@pytest.mark.parametrize("bench", [{"gripper_linkage": True}], indirect=True)
def test_a_linkage_gets_angles_from_this_node_alone(ros: Any, probe: Probe, bench: Bench) -> None:
    assert bench.reset("reach", 0).error_code == 0
    ros.until(lambda: bench.world.finger_joint[-1:] == [0.0])
    assert bench.world.finger == 0.0, "nothing is sent to the controller of sliding fingers"
    ros.until(lambda: bench.node.guarded.rule.running)
    fingers = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
    ros.until(lambda: fingers.get_subscription_count() == 1)
    fingers.publish(bench.permits.given(Float64MultiArray(data=[0.0225])))
    ros.until(lambda: bench.world.finger_joint[-1] == pytest.approx(joint_rad(0.045)))
    fingers.publish(bench.permits.given(Float64MultiArray(data=[9.0])))
    ros.until(lambda: bench.node.counters["dropped gripper commands"] == 1)
    sent = len(bench.world.finger_joint)
    fingers.publish(Float64MultiArray(data=[0.0]))
    ros.until(lambda: any(f"commands on {names.GRIPPER}" in counter for counter in bench.node.counters))
    assert len(bench.world.finger_joint) == sent, "a command past the gate changes nothing"


def test_an_impossible_reset_is_one_sentence(bench: Bench) -> None:
    response = bench.reset("pour", 0)
    assert response.error_code == 407
    assert "reach" in response.error_msg
    assert "beads" in response.error_msg
    bench.world.controllers_active = False
    response = bench.reset("reach", 0)
    assert response.error_code == 407
    assert "is its controller active?" in response.error_msg
    bench.world.controllers_active = True
    assert bench.reset("reach", 0).error_code == 0, "and the next one may succeed"


def test_the_messages_of_gazebo_as_they_are(ros: Any, probe: Probe) -> None:
    messages = pytest.importorskip("ros_gz_interfaces.msg", reason=NO_GAZEBO)
    services = pytest.importorskip("ros_gz_interfaces.srv", reason=NO_GAZEBO)
    asked: list[Any] = []

    def answer(request: Any, response: Any) -> Any:
        asked.append(request)
        response.success = True
        return response

    probe.create_service(services.SetEntityPose, names.GAZEBO_SET_POSE, answer)
    probe.create_service(services.ControlWorld, names.GAZEBO_CONTROL, answer)
    probe.create_service(services.SpawnEntity, names.GAZEBO_CREATE, answer)
    probe.create_service(services.DeleteEntity, names.GAZEBO_REMOVE, answer)
    publisher = probe.create_publisher(messages.Contacts, names.GAZEBO_CONTACTS, 10)
    received: list[Any] = []
    world = GazeboWorld(ros.add(Node, "bare"), CELL, lambda touches, stamp_ns: received.append((touches, stamp_ns)))
    ros.until(lambda: world.ready() and publisher.get_subscription_count() == 1)

    pose = transform((0.4, -0.1, 0.02))
    assert ros.result(world.place("red cube", pose)).success
    assert asked[0].entity.name == "red_cube"
    assert asked[0].entity.type == messages.Entity.MODEL
    np.testing.assert_allclose(convert.matrix_of(asked[0].pose), pose)
    assert ros.result(world.run_to(12_300_000_000)).success
    control = asked[1].world_control
    assert (control.run_to_sim_time.sec, control.run_to_sim_time.nanosec) == (12, 300_000_000)
    assert not any((control.pause, control.step, control.multi_step, control.reset.all))

    assert ros.result(world.add("red lid", pose)).success
    assert asked[2].entity_factory.sdf == prop_sdf("red lid", CELL)
    np.testing.assert_allclose(convert.matrix_of(asked[2].entity_factory.pose), pose)
    assert ros.result(world.remove("red lid")).success
    assert (asked[3].entity.name, asked[3].entity.type) == ("lid", messages.Entity.MODEL)

    contact = messages.Contact(normals=[Vector3(z=1.0)] * 2, wrenches=[messages.JointWrench()] * 2)
    contact.collision1.name = "cell::wrist_3_link::wrist_3_link_collision"
    contact.collision2.name = "table::table::table_collision"
    for wrench in contact.wrenches:
        wrench.body_1_wrench.force = Vector3(x=3.0, z=-4.0)
    publisher.publish(messages.Contacts(header=convert.header(7_000_000_000, ""), contacts=[contact]))
    ros.until(lambda: received)
    assert received == [([Touch("wrist_3_link", "table", 8.0)], 7_000_000_000)]


def test_without_the_messages_of_gazebo_it_says_what_to_install(ros: Any) -> None:
    try:
        import ros_gz_interfaces.msg  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("ros_gz_interfaces is installed")
    node = ros.add(Node, "bare")
    with pytest.raises(MissingDependencyError, match="ros-jazzy-ros-gz"):
        GazeboWorld(node, CELL, lambda touches, stamp_ns: None)


@pytest.mark.parametrize("has_it", [True, False])
def test_a_bridge_without_the_service_that_places_is_named_before_the_start(
    has_it: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib" / "libros_gz_bridge.so"
    index = tmp_path / "share" / "ament_index" / "resource_index" / "packages" / "ros_gz_bridge"
    manifest = tmp_path / "share" / "ros_gz_bridge" / "package.xml"
    for file in (library, index, manifest):
        file.parent.mkdir(parents=True)
    index.touch()
    manifest.write_text("<package><name>ros_gz_bridge</name><version>1.0.5</version></package>")
    services = [b"ros_gz_interfaces/srv/ControlWorld", *[b"ros_gz_interfaces/srv/SetEntityPose"] * has_it]
    library.write_bytes(b"\x7fELF\0" + b"\0".join(services))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    if has_it:
        require_service_that_places()
        return
    with pytest.raises(MissingDependencyError, match=r"^ros_gz_bridge 1\.0\.5 has no service .* 1\.0\.11 .* run: sudo"):
        require_service_that_places()
