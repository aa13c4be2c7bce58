"""Every topic, service and action of the graph, and how they are delivered. Relative: a namespace moves them all."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

CLOCK = "/clock"
JOINT_STATES = "joint_states"
ROBOT_DESCRIPTION = "robot_description"
TRAJECTORY = "arm/joint_trajectory"
"""Merton's own name: no controller of a robot's driver may listen to it, only the node that owns the arm."""
GRIPPER = "gripper_controller/commands"

CELL_STATE = "cell/state"
CELL_SAFETY = "cell/safety_state"
CELL_RESET = "cell/reset"
CELL_PAST_STATE = "cell/past_state"
CELL_RELEASE = "cell/release_stop"
AWAITING_ARRANGEMENT = "cell/awaiting_arrangement"
ARRANGED = "cell/arranged"
WANTED_LAYOUT = "cell/wanted_layout"
"""A drawing of the scene that a person is to arrange."""

GAZEBO_CONTACTS = "gazebo/contacts"
"""Contacts of the robot in Gazebo; through the bridge, as the joints, poses and services below."""
GAZEBO_JOINT_STATES = "gazebo/joint_states"
GAZEBO_TRIGGER = "gazebo/camera_trigger"
"""Each message makes all cameras take a frame now."""
GAZEBO_RENDERER = "gazebo/renderer"
"""The simulated instant of every step, once the renderer has reached it: in the header of a `CameraInfo`."""
GAZEBO_ARM = "arm_controller/joint_trajectory"
"""Motions that may be carried out: gazebo_cell_node passes them on from `TRAJECTORY`."""
GAZEBO_FINGERS = "gripper_controller/joint_trajectory"
"""Motion of the left finger: gazebo_cell_node makes it of the gripper's command."""
GAZEBO_LINKAGE = "finger_joint_controller/joint_trajectory"
"""The same for the driven joint of a linkage."""
GAZEBO_SET_POSE = "/world/cell/set_pose"
GAZEBO_CREATE = "/world/cell/create"
GAZEBO_REMOVE = "/world/cell/remove"
GAZEBO_CONTROL = "/world/cell/control"

DRIVER_TRAJECTORY = "scaled_joint_trajectory_controller/joint_trajectory"
"""Topic of the controller of the UR ROS 2 driver that carries motions out. For another one remap these three names."""
DRIVER_CONTROLLER_STATE = "scaled_joint_trajectory_controller/controller_state"
DRIVER_GOALS = "scaled_joint_trajectory_controller/follow_joint_trajectory/_action/status"
"""The goals of other programs: Merton has none."""
DRIVER_JOINT_STATES = "joint_state_broadcaster/joint_states"
"""The driver's own joint states, which lack the gripper: config/ur_driver.yaml keeps them off `joint_states`."""
DRIVER_SAFETY = "io_and_status_controller/safety_mode"
DRIVER_SPEED_SCALING = "speed_scaling_state_broadcaster/speed_scaling"
DRIVER_UNLOCK = "dashboard_client/unlock_protective_stop"

FRAME_REQUEST = "camera/frame_request"
SEGMENT_THINGS = "camera/segment_things"
CAMERA_NODE = "camera_node"
DISTORTION_NODE = "distortion_node"
QUALITY_NODE = "quality_node"
ARM_NODE = "arm_node"
ANSWER = "vlm/answer"
PREDICT = "vla/predict"
EXECUTE = "arm/execute"
STOP = "arm/stop"
RESET_STOP = "arm/reset_stop"
RELEASE_COLLISION = "arm/release_collision"
ARM_SAFETY = "arm/safety_state"
ARM_MARKERS = "arm/markers"
HEARTBEAT = "arm/heartbeat"
SCORE = "score/trial"
RECORD = "aggregator/record"
RATINGS = "ratings"
LEADERBOARD = "leaderboard"
RUN_TRIAL = "experiment/run_trial"
RUN_EXPERIMENT = "experiment/run"
CONFIRM = "experiment/confirm"
AWAITING_CONFIRMATION = "experiment/awaiting_confirmation"
PROGRESS = "experiment/progress"
TRIAL_RESULTS = "trial_results"
TRIAL_EVIDENCE = "trial_evidence"

BASE_FRAME = "base_link"


def color(camera: str) -> str:
    """The colour stream of a camera, named as realsense-ros names it."""
    return f"camera/{camera}/color/image_raw"


def color_info(camera: str) -> str:
    """The CameraInfo beside the colour stream."""
    return f"camera/{camera}/color/camera_info"


def depth(camera: str) -> str:
    """The depth stream, aligned to colour."""
    return f"camera/{camera}/aligned_depth_to_color/image_raw"


def distorted(camera: str) -> str:
    """The colour stream after the distortion."""
    return f"distorted/{camera}/image_raw"


def distorted_depth(camera: str) -> str:
    """The aligned depth stream after a fault of depth; there are messages only while one is set."""
    return f"distorted/{camera}/aligned_depth_to_color/image_raw"


def distortion_info(camera: str) -> str:
    """The distortion of the image of the same stamp."""
    return f"distorted/{camera}/info"


def quality(camera: str) -> str:
    """The quality of the distorted images, by a metric that needs no reference image."""
    return f"quality/{camera}"


def answers(which: str) -> str:
    """The VLM's answers in a trial, about the "reference" or the "distorted" image."""
    return f"experiment/answer/{which}"


def chunks(which: str) -> str:
    """The VLA's chunks in a trial, on the "reference" or the "distorted" images."""
    return f"experiment/chunk/{which}"


def optical_frame(camera: str) -> str:
    """The frame of a camera's images: x right, y down, z forward."""
    return f"camera_{camera}_color_optical_frame"


def gazebo_pose(model: str) -> str:
    """The pose of a model of Gazebo's world."""
    return f"gazebo/{model}/pose"


def _profile(reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


SENSOR_QOS = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 5)
"""Images: a late image is worse than none."""
LATEST_QOS = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 1)
"""For a reader that may be slower than the writer: it gets the newest message, older ones are dropped."""
RELIABLE_QOS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 500)
"""Commands and joint states: none may be lost."""
JOINTS_QOS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 4000)
"""Joint states between a simulated cell and arm_node: the path of a trial has each of them. A cell that runs ahead of
arm_node, as on a busy machine, may be 80 s of motion ahead."""
KEPT_QOS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 500)
"""Results of a trial: a recorder that is discovered a moment late still gets all of them."""
LATCHED_QOS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1)
"""States: a late subscriber gets the last one."""
