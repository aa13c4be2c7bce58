"""The compiled formulas behind `merton.execution.kinematics`.

`robot` is always the Denavit-Hartenberg lengths d1, a2, a3, d4, d5, d6 [m]; angles are in rad, poses 4x4. The
formulas are those of UR's `base`. The batched functions and `solve` take and give poses in the frame that `side` names,
the factor of x and y against `base`: 1 is `base`, -1 is `base_link`, which is half a turn about z away.
Sines and cosines come from the geometry; angles (atan2, never an arc cosine) are computed only for results.
Everything is in this one file because numba's cache on disk notices only changes of the file a function is in.
"""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np
from numba import njit

from merton.world.geometry import Array

SINGULAR_SINE = 1e-11
"""|sin(joint 5)| below which joints 4 and 6 turn about the same line and joint 6 is free."""

BOUNDARY = 1e-9
"""A pose this little beyond a boundary [m; of the wrist: |sin(joint 5)|] has the boundary's solution.

Ours: poses of other software differ from these by 1e-11, and a stretched arm would be out of reach."""

LIMIT_GUARD = 1e-10
"""An angle this little beyond a joint limit [rad] is rounding: it is taken as the limit, not as a whole turn away."""


@njit(cache=True)
def _frames(q: Array, robot: Array, frames: Array) -> None:
    """Fill the parts of frames (7, 4, 4) that depend on the joints. `robot` is d1, a2, a3, d4, d5, d6.

    The rest (base, last rows, constant entries) must be there already: `_still_frames`.
    """
    d1, a2, a3, d4, d5, d6 = robot
    s1, c1 = sin(q[0]), cos(q[0])
    frames[1, 0, 0], frames[1, 0, 1], frames[1, 1, 0], frames[1, 1, 1] = c1, -s1, s1, c1
    # Axes 2, 3 and 4 are parallel: their frames differ by the angle in the arm's vertical plane.
    angle = 0.0
    along, height, aside = 0.0, d1, 0.0
    for i in range(2, 5):
        if i == 3:
            along, height = a2 * cos(angle), d1 + a2 * sin(angle)
        elif i == 4:
            along, height, aside = along + a3 * cos(angle), height + a3 * sin(angle), d4
        angle += q[i - 1]
        s, c = sin(angle), cos(angle)
        frame = frames[i]
        frame[0, 0], frame[0, 1], frame[0, 2], frame[0, 3] = c1 * c, -c1 * s, s1, c1 * along + s1 * aside
        frame[1, 0], frame[1, 1], frame[1, 2], frame[1, 3] = s1 * c, -s1 * s, -c1, s1 * along - c1 * aside
        frame[2, 0], frame[2, 1], frame[2, 3] = s, c, height
    s5, c5, s6, c6 = sin(q[4]), cos(q[4]), sin(q[5]), cos(q[5])
    for i in range(3):
        x4, y4, z4 = frames[4, i, 0], frames[4, i, 1], frames[4, i, 2]
        x5, y5, z5 = c5 * x4 + s5 * z4, -s5 * x4 + c5 * z4, -y4
        frames[5, i, 0], frames[5, i, 1], frames[5, i, 2] = x5, y5, z5
        frames[5, i, 3] = frames[4, i, 3] + d5 * z5
        frames[6, i, 0], frames[6, i, 1], frames[6, i, 2] = c6 * x5 - s6 * z5, -s6 * x5 - c6 * z5, y5
        frames[6, i, 3] = frames[5, i, 3] + d6 * y5


@njit(cache=True)
def _still_frames(count: int, robot: Array) -> Array:
    """Frames (count, 7, 4, 4) with the entries that do not depend on the joints."""
    frames = np.zeros((count, 7, 4, 4))
    for n in range(count):
        for i in range(7):
            frames[n, i, 3, 3] = 1.0
        for i in range(3):
            frames[n, 0, i, i] = 1.0
        frames[n, 1, 2, 2], frames[n, 1, 2, 3] = 1.0, robot[0]
    return frames


@njit(cache=True)
def _turn(pose: Array, side: float, turned: Array) -> None:
    """Fill `turned` with a pose (4, 4) in the frame of `side` instead of `base`, or the other way round."""
    for j in range(4):
        turned[0, j], turned[1, j] = 0.0 + side * pose[0, j], 0.0 + side * pose[1, j]  # 0.0 +: no negative zero
        turned[2, j], turned[3, j] = pose[2, j], pose[3, j]


@njit(cache=True)
def frames_batch(joints: Array, robot: Array, side: float) -> Array:
    """Base and link frames (n, 7, 4, 4) for joints (n, 6)."""
    frames = _still_frames(joints.shape[0], robot)
    for n in range(joints.shape[0]):
        _frames(joints[n], robot, frames[n])
        for i in range(7):
            _turn(frames[n, i], side, frames[n, i])
    return frames


@njit(cache=True)
def forward_one(joints: Array, robot: Array, side: float, pose: Array) -> None:
    """Fill pose (4, 4) for joints (6,): `forward_batch` without the cost of taking and making arrays of a batch."""
    frames = _still_frames(1, robot)[0]
    _frames(joints, robot, frames)
    _turn(frames[6], side, pose)


@njit(cache=True)
def forward_batch(joints: Array, robot: Array, side: float) -> Array:
    """The last of these frames alone, (n, 4, 4)."""
    frames = _still_frames(1, robot)[0]
    poses = np.empty((joints.shape[0], 4, 4))
    for n in range(joints.shape[0]):
        _frames(joints[n], robot, frames)
        _turn(frames[6], side, poses[n])
    return poses


@njit(cache=True)
def _wrapped(angle: float) -> float:
    """The same direction in [-pi, pi]."""
    return angle - 2.0 * pi * np.round(angle / (2.0 * pi))


@njit(cache=True)
def _opposite(angle: float) -> float:
    """The opposite direction, for an angle in [-pi, pi]."""
    return angle - pi if angle > 0.0 else angle + pi


@njit(cache=True)
def inverse(pose: Array, robot: Array, free_joint_6: float, solutions: Array, gaps: Array) -> None:
    """Fill solutions (8, 6) in the order of BRANCHES, NaN where a branch does not exist, and gaps (4,); pose in `base`.

    A gap belongs to a shoulder and a wrist: how far [m] frame 4's origin lies beyond what upper arm and forearm can
    reach (positive) or fold to (negative); 0 where the two branches exist, NaN where there is no root at the shoulder.
    Where the wrist is singular, joint 6 is the angle nearest to `free_joint_6` [rad] with which the arm reaches.
    """
    d4, d6 = robot[3], robot[5]
    solutions[:] = np.nan
    gaps[:] = np.nan
    # The wrist centre (origin of frame 5) lies d6 behind the tool, and d4 from the vertical plane that joint 1 turns.
    wx, wy = pose[0, 3] - d6 * pose[0, 2], pose[1, 3] - d6 * pose[1, 2]
    radius2 = wx * wx + wy * wy
    if not radius2 >= (d4 - BOUNDARY) ** 2:  # NaN included
        return
    root = sqrt(max(wx * wx + wy * wy - d4 * d4, 0.0))
    for shoulder in range(2):
        side = -root if shoulder else root
        reached, sine5 = _branches(pose, robot, shoulder, side, free_joint_6, SINGULAR_SINE, solutions, gaps)
        if not reached and SINGULAR_SINE <= sine5 < BOUNDARY:
            reached, sine5 = _branches(pose, robot, shoulder, side, free_joint_6, BOUNDARY, solutions, gaps)
        if not reached and radius2 <= (d4 + BOUNDARY) ** 2:
            _branches(pose, robot, shoulder, 0.0, free_joint_6, BOUNDARY, solutions, gaps)


@njit(cache=True)
def _branches(
    pose: Array,
    robot: Array,
    shoulder: int,
    root: float,
    free_joint_6: float,
    singular_sine: float,
    solutions: Array,
    gaps: Array,
) -> tuple[bool, float]:
    """Fill the four solutions and two gaps of one root at the shoulder [m]: whether one exists, and |sin(joint 5)|.

    Joint 6 is free where |sin(joint 5)| is below `singular_sine`.
    """
    d1, a2, a3, d4, d5, d6 = robot
    wx, wy = pose[0, 3] - d6 * pose[0, 2], pose[1, 3] - d6 * pose[1, 2]
    wz = pose[2, 3] - d6 * pose[2, 2]
    # Joint 1 is the bearing of the wrist centre plus the angle of (root, d4): sine and cosine of that sum.
    s1, c1 = wy * root + wx * d4, wx * root - wy * d4
    length = sqrt(s1 * s1 + c1 * c1)
    s1, c1 = s1 / length, c1 / length
    q1 = atan2(s1, c1)
    # The tool's axes along the common direction (s1, -c1, 0) of axes 2, 3, 4 are functions of joints 5 and 6 alone.
    across_x = pose[0, 0] * s1 - pose[1, 0] * c1
    across_y = pose[0, 1] * s1 - pose[1, 1] * c1
    across_z = pose[0, 2] * s1 - pose[1, 2] * c1
    sine5 = sqrt(across_x * across_x + across_y * across_y)
    q5 = atan2(sine5, across_z)
    singular = sine5 < singular_sine
    if singular:
        q6 = _reaching_joint_6(pose, robot, s1, c1, free_joint_6)
        s6, c6 = sin(q6), cos(q6)
    else:
        s6, c6 = -across_y / sine5, across_x / sine5
        q6 = atan2(s6, c6)
    # y of frame 4 lies in the arm's plane: it gives the sum of joints 2, 3, 4 and the way to frame 4's origin.
    y_along = (s6 * pose[0, 0] + c6 * pose[0, 1]) * c1 + (s6 * pose[1, 0] + c6 * pose[1, 1]) * s1
    y_up = s6 * pose[2, 0] + c6 * pose[2, 1]
    q234 = atan2(-y_along, y_up)
    reached = False
    for wrist in range(2):
        if wrist == 1:  # the wrist turned over: joint 5 changes sign, joint 6 and frame 4 turn by half a turn
            q5 = -q5
            if not singular:
                q6, q234, y_along, y_up = _opposite(q6), _opposite(q234), -y_along, -y_up
        along = wx * c1 + wy * s1 + d5 * y_along
        height = wz - d1 + d5 * y_up
        reach2 = along * along + height * height
        reach = sqrt(reach2)
        if not abs(a2 - a3) - BOUNDARY <= reach <= abs(a2 + a3) + BOUNDARY:  # NaN included
            gaps[2 * shoulder + wrist] = reach - min(max(reach, abs(a2 - a3)), abs(a2 + a3))
            continue
        gaps[2 * shoulder + wrist] = 0.0
        reached = True
        # 16 times the squared area of the triangle of upper arm, forearm and reach (Heron): no arc cosine needed.
        area2 = ((a2 + a3) ** 2 - reach2) * (reach2 - (a2 - a3) ** 2)
        sine3 = sqrt(max(area2, 0.0)) / (2.0 * a2 * a3)
        cosine3 = (reach2 - a2 * a2 - a3 * a3) / (2.0 * a2 * a3)
        q3 = atan2(sine3, cosine3)
        forward, up = a2 + a3 * cosine3, a3 * sine3
        for elbow in range(2):
            if elbow == 1:
                q3, up = -q3, -up
            q2 = atan2(height * forward - along * up, along * forward + height * up)
            row = solutions[4 * shoulder + 2 * wrist + elbow]
            row[0], row[1], row[2] = q1, q2, q3
            row[3], row[4], row[5] = _wrapped(q234 - q2 - q3), q5, q6
    return reached, sine5


@njit(cache=True)
def _reaching_joint_6(pose: Array, robot: Array, s1: float, c1: float, wanted: float) -> float:
    """Joint 6 in [-pi, pi] at the wrist's singularity: the angle nearest to `wanted` [rad] with which the arm reaches.

    Joint 6 then swings frame 4's origin around the wrist centre, on a circle of radius d5 in the arm's plane, and so
    decides how far it is from the shoulder.
    """
    d1, a2, a3, d5, d6 = robot[0], robot[1], robot[2], robot[4], robot[5]
    centre_along = (pose[0, 3] - d6 * pose[0, 2]) * c1 + (pose[1, 3] - d6 * pose[1, 2]) * s1
    centre_up = pose[2, 3] - d6 * pose[2, 2] - d1
    centre = sqrt(centre_along * centre_along + centre_up * centre_up)
    # The tool's axes x and y in the arm's plane: y of frame 4 is sin(joint 6) times the one plus cos(joint 6) times the
    # other, at `angle` from the line that leads from the shoulder to the wrist centre.
    x_along, x_up = pose[0, 0] * c1 + pose[1, 0] * s1, pose[2, 0]
    y_along, y_up = pose[0, 1] * c1 + pose[1, 1] * s1, pose[2, 1]
    x_angle = atan2(x_up * centre_along - x_along * centre_up, x_along * centre_along + x_up * centre_up)
    handed = x_along * y_up - x_up * y_along  # 1, or -1 where the tool's z axis points the other way
    angle = _wrapped(x_angle + handed * (pi / 2.0 - wanted))
    cosine = cos(angle)
    reach2 = centre * centre + d5 * d5 + 2.0 * centre * d5 * cosine
    nearest2 = min(max(reach2, (a2 - a3) ** 2), (a2 + a3) ** 2)
    if nearest2 == reach2 or not centre > 0.0:
        return _wrapped(wanted)
    cosine = (nearest2 - centre * centre - d5 * d5) / (2.0 * centre * d5)
    if not abs(cosine) <= 1.0:  # out of reach with every angle: the one that comes closest
        cosine = min(max(cosine, -1.0), 1.0)
    reaching = atan2(sqrt(1.0 - cosine * cosine), cosine)
    turn = (reaching if angle >= 0.0 else -reaching) - angle
    return _wrapped(wanted - handed * turn)


@njit(cache=True)
def inverse_batch(poses: Array, robot: Array, free_joint_6: float, side: float) -> Array:
    """`inverse` of poses (n, 4, 4): (n, 8, 6)."""
    solutions, gaps, pose = np.empty((poses.shape[0], 8, 6)), np.empty(4), np.empty((4, 4))
    for i in range(poses.shape[0]):
        _turn(poses[i], side, pose)
        inverse(pose, robot, free_joint_6, solutions[i], gaps)
    return solutions


@njit(cache=True)
def nearest(solutions: Array, near: Array, limit: Array) -> int:
    """Move every solution (n, 6) to its image nearest to `near` within +-limit; the row least far from it, or -1."""
    best, least = -1, np.inf
    for row in range(solutions.shape[0]):
        if np.isnan(solutions[row, 0]):
            continue
        distance = 0.0
        for joint in range(6):
            around = min(max(near[joint], -limit[joint]), limit[joint])
            angle = solutions[row, joint]
            angle += 2.0 * pi * np.round((around - angle) / (2.0 * pi))
            if angle > limit[joint] + LIMIT_GUARD:
                angle -= 2.0 * pi
            elif angle < -limit[joint] - LIMIT_GUARD:
                angle += 2.0 * pi
            if abs(angle) > limit[joint] + LIMIT_GUARD:
                distance = np.nan  # no image of this angle is within the limits
            solutions[row, joint] = min(max(angle, -limit[joint]), limit[joint])
            distance += (angle - near[joint]) ** 2
        if distance < least:
            best, least = row, distance
    return best


@njit(cache=True)
def _residual(joints: Array, pose: Array, robot: Array) -> tuple[float, float]:
    """Distance [m] and angle [rad] between a pose in `base` and the one the joints give."""
    frames = _still_frames(1, robot)[0]
    _frames(joints, robot, frames)
    gap2, chord2 = 0.0, 0.0
    for i in range(3):
        gap2 += (frames[6, i, 3] - pose[i, 3]) ** 2
        for j in range(3):
            chord2 += (frames[6, i, j] - pose[i, j]) ** 2
    return sqrt(gap2), 2.0 * np.arcsin(min(1.0, sqrt(chord2 / 8.0)))


@njit(cache=True)
def solve(target: Array, near: Array, robot: Array, limit: Array, side: float) -> tuple[int, Array, float, float]:
    """Row, joints (6,) and residuals of the solution nearest to `near`; row -1 if there is none."""
    solutions, gaps, pose = np.empty((8, 6)), np.empty(4), np.empty((4, 4))
    _turn(target, side, pose)
    # At the wrist singularity joint 6 is free: the current angle first, then others, which the limits may require.
    for attempt in range(25):
        free_joint_6 = near[5] + (1 - 2 * (attempt % 2)) * ((attempt + 1) // 2) * pi / 12.0
        inverse(pose, robot, free_joint_6, solutions, gaps)
        row = nearest(solutions, near, limit)
        if row >= 0:
            gap, angle = _residual(solutions[row], pose, robot)
            return row, solutions[row].copy(), gap, angle
    return -1, np.full(6, np.nan), np.nan, np.nan


@njit(cache=True)
def jacobian_batch(joints: Array, robot: Array, side: float) -> Array:
    """Geometric Jacobians (n, 6, 6) for joints (n, 6), rows linear [m/rad] then angular."""
    frames = _still_frames(1, robot)[0]
    jacobians = np.empty((joints.shape[0], 6, 6))
    for n in range(joints.shape[0]):
        _frames(joints[n], robot, frames)
        for j in range(6):
            ax, ay, az = frames[j + 1, 0, 2], frames[j + 1, 1, 2], frames[j + 1, 2, 2]
            rx = frames[6, 0, 3] - frames[j + 1, 0, 3]
            ry = frames[6, 1, 3] - frames[j + 1, 1, 3]
            rz = frames[6, 2, 3] - frames[j + 1, 2, 3]
            jacobians[n, 0, j] = side * (ay * rz - az * ry)
            jacobians[n, 1, j] = side * (az * rx - ax * rz)
            jacobians[n, 2, j] = ax * ry - ay * rx
            jacobians[n, 3, j], jacobians[n, 4, j], jacobians[n, 5, j] = side * ax, side * ay, az
    return jacobians
