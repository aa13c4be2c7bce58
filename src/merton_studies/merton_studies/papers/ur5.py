"""The arm of Embodied-IQA's appendices B to D (arXiv 2505.16815), against a UR5 as it is built.

Table 3, the lengths, the matrices of eq. (2) to (8) and (15), entry by entry, and the numbers of the text, in
`config/published/ur5.csv`. An entry is a formula: "-s5" is -sin(theta5), "a3 c4" a3 cos(theta4), "ca" cos(alpha).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray

from merton.execution.kinematics import ROBOTS
from merton_studies.opinions.published import Claim
from merton_studies.papers.facts import Cells, Fact, Key, Recomputed

Array = NDArray[np.float64]

UR5 = ROBOTS["UR5"]
"""The arm that the paper names, also where the cell has another."""

Links = tuple[tuple[float, float, float], ...]
"""alpha, a and d of each row of Table 3."""

LENGTHS = ("d1", "a2", "a3", "d4", "d5", "d6")
POSTURES = 2000
SAME_RAD = 1e-6
"""Joint angles this near to one another are one solution."""
READINGS = {
    "eq. (1), lengths as printed": ("standard", 1.0),
    "eq. (1), a2 and a3 negative": ("standard", -1.0),
    "modified convention, lengths as printed": ("modified", 1.0),
    "modified convention, a2 and a3 negative": ("modified", -1.0),
}
"""Order of the four factors of a link, and the sign of a2 and a3."""
MATRICES = {"(3)": 0, "(4)": 1, "(5)": 2, "(6)": 3, "(7)": 4, "(8)": 5}
"""Equation to the place of its link."""


def recompute(cells: Cells, facts: Sequence[Fact]) -> Iterator[Recomputed]:
    """Table 3 from Merton's UR5; the matrices from eq. (1); what the printed equations do from both."""
    yield from _table_3()
    for name in LENGTHS:
        length = float(getattr(UR5.lengths, name))
        yield Recomputed(("lengths", name, "m"), abs(length), f"Merton's UR5, {length:g} m", read=length < 0)
    yield from _entries(cells, facts)
    yield from _readings(cells)
    _, _, y = _wrist_centre(_poses())
    (aside,) = [fact for fact in facts if fact.column == "y of the wrist centre in frame 1"]
    gap = evaluated(aside.printed, {name: cells["lengths", name, "m"] for name in LENGTHS}) - float(np.mean(y))
    yield Recomputed(
        aside.key, float(np.mean(y)), f"the same for all of {POSTURES} postures of a UR5: -d4",
        verdict="equal" if abs(gap) < 1e-9 else "misprint",
    )  # fmt: skip
    solutions = (~np.isnan(_solutions()[..., 0])).sum(axis=1)
    yield Recomputed(
        ("text", "D.4", "solutions of the inverse kinematics"), float(solutions.max()),
        f"the most; {100 * np.mean(solutions == 8):.0f} % of {POSTURES} random postures have as many", read=True,
    )  # fmt: skip


def claims(cells: Cells) -> tuple[Claim, ...]:
    """Claims of appendix D about a UR5, and results of its equations."""
    links = _printed(cells)
    frames = UR5.link_frames(_postures()[:100], frame="base")
    normal = np.cross(frames[:, 4, :3, 2], frames[:, 6, :3, 2])
    between = frames[:, 6, :3, 3] - frames[:, 4, :3, 3]
    apart = np.abs((between * normal).sum(axis=1)) / np.linalg.norm(normal, axis=1)
    found = {name: _mean_error(links, *reading) for name, reading in READINGS.items()}
    fitting = [name for name, error in found.items() if error < 1e-9]
    rank = _printed_rank(links)
    return (
        Claim(
            "The axes of joints 4, 5 and 6 intersect at a common point (appendix D)",
            f"axes 4 and 6 of a UR5 pass each other at {apart.mean():.5f} m in every posture",
            "holds" if apart.max() < 1e-9 else "does not hold",
        ),
        Claim(
            "Eq. (1) to (9) with Table 3 describe a UR5",
            f"they turn joints 1 and 2 about one line (rank {rank}); a UR5 is: {', '.join(fitting) or 'none of them'}",
            "does not hold" if not any(name.startswith("eq.") for name in fitting) else "holds",
        ),
        Claim(
            "Eq. (10) to (18) give the joint angles of a pose",
            f"of {POSTURES} poses of a UR5 they find the first three joints of {_recovered(links)}; of as many poses "
            f"of eq. (9) itself they lead to {_recovered_own(links)}",
            "does not hold" if _recovered(links) + _recovered_own(links) == 0 else "holds in part",
        ),
        Claim(
            "theta5 follows from eq. (18)",
            "eq. (18) needs theta4, which the line after it computes from theta5",
            "does not hold",
        ),
    )


def evaluated(formula: str, symbols: Mapping[str, float]) -> float:
    """The value of a printed entry: terms with + or - between them, each a product of numbers and names."""
    total = 0.0
    for sign, term in re.findall(r"([+-]?)\s*([^+-]+)", formula):
        factors = [symbols[word] if word in symbols else float(word) for word in term.split()]
        total += math.prod(factors) * (-1.0 if sign == "-" else 1.0)
    return total


def _table_3() -> Iterator[Recomputed]:
    """Craig's modified parameters of Merton's UR5, from its link frames in the zero posture."""
    frames = UR5.link_frames(np.zeros(6), frame="base")
    for place in range(6):
        link = np.linalg.inv(frames[place]) @ frames[place + 1]
        alpha = math.atan2(-link[1, 2], link[2, 2])
        offset = -math.sin(alpha) * link[1, 3] + math.cos(alpha) * link[2, 3]
        theta = math.atan2(-link[0, 1], link[0, 0])
        how, row = "Merton's UR5 in the modified convention", f"joint {place + 1}"
        for column, value in (("alpha", alpha), ("a", abs(link[0, 3])), ("d", offset), ("theta", theta)):
            clean = 0.0 if abs(value) < 1e-12 else float(value)
            read = column == "a" and link[0, 3] < -1e-12
            yield Recomputed(("3", row, column), clean, how + (", its length" if read else ""), read=read)


def _entries(cells: Cells, facts: Sequence[Fact]) -> Iterator[Recomputed]:
    """Whether each printed entry is that of the product, at twenty random sets of angles."""
    rng = np.random.default_rng(0)
    sets = rng.uniform(-math.pi, math.pi, (20, 6))
    lengths, links = {name: cells["lengths", name, "m"] for name in LENGTHS}, _printed(cells)
    products = {
        name: [_standard(float(angles[place]), *links[place]) for angles in sets] for name, place in MATRICES.items()
    }
    products["(15)"] = [_wrist(angles) for angles in sets]
    products["(2)"] = [_standard(angles[0], angles[3], angles[1], angles[2]) for angles in sets]
    for fact in facts:
        if fact.table not in products:
            continue
        i, j = int(fact.row) - 1, int(fact.column) - 1
        gaps = []
        for angles, product in zip(sets, products[fact.table], strict=True):
            symbols = lengths | {f"c{n + 1}": math.cos(angle) for n, angle in enumerate(angles)}
            symbols |= {f"s{n + 1}": math.sin(angle) for n, angle in enumerate(angles)}
            symbols |= {"c": math.cos(angles[0]), "s": math.sin(angles[0]), "a": angles[1], "d": angles[2]}
            symbols |= {"ca": math.cos(angles[3]), "sa": math.sin(angles[3])}
            gaps.append(abs(evaluated(fact.printed, symbols) - product[i, j]))
        how = "the product of its factors, at twenty sets of angles"
        yield Recomputed(fact.key, None, how, verdict="equal" if max(gaps) < 1e-12 else "misprint")


def _readings(cells: Cells) -> Iterator[Recomputed]:
    links = _printed(cells)
    for name, reading in READINGS.items():
        yield Recomputed(
            ("readings", name, "mean distance from a UR5, m"), _mean_error(links, *reading),
            f"position of the tool in {POSTURES} random postures",
        )  # fmt: skip
    for key, value, how in (
        (
            ("readings", "eq. (1) to (9)", "rank of the Jacobian"),
            _printed_rank(links),
            "the most in 100 postures",
        ),
        (("readings", "UR5", "rank of the Jacobian"), _rank(UR5.jacobian(_postures()[:100])), "the most in 100"),
        (
            ("readings", "eq. (11)", "poses of a UR5 with theta1"),
            _right_first_joint(links),
            f"of {POSTURES}, to a degree",
        ),
        (("readings", "eq. (10) to (18)", "poses of a UR5 recovered"), _recovered(links), f"of {POSTURES}"),
        (
            ("readings", "eq. (10) to (18)", "poses of eq. (9) recovered"),
            _recovered_own(links),
            f"of {POSTURES}",
        ),
    ):
        found: Key = key
        yield Recomputed(found, float(value), how)


@cache
def _postures() -> Array:
    return np.random.default_rng(0).uniform(-math.pi, math.pi, (POSTURES, 6))


@cache
def _poses() -> Array:
    return np.asarray(UR5.forward(_postures(), frame="base"))


@cache
def _solutions() -> Array:
    """(n, 8, 6): all joint angles that a UR5 reaches the poses with."""
    return np.asarray(UR5.inverse(_poses(), frame="base"))


def _lengths(links: Links) -> dict[str, float]:
    """Of the rows of Table 3, by name."""
    return {name: links[int(name[1])][1] if name[0] == "a" else links[int(name[1]) - 1][2] for name in LENGTHS}


def _standard(theta: float, alpha: float, a: float, d: float) -> Array:
    """Rz(theta) Tz(d) Tx(a) Rx(alpha): eq. (1)."""
    return _turn_z(theta, d) @ _turn_x(alpha, a)


def _turn_z(angle: float | Array, along: float = 0.0) -> Array:
    """Rz Tz of one angle, or of each of (n,): (n, 4, 4)."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.zeros((*np.shape(angle), 4, 4))
    turn[..., 0, 0], turn[..., 0, 1], turn[..., 1, 0], turn[..., 1, 1] = c, -s, s, c
    turn[..., 2, 2], turn[..., 2, 3], turn[..., 3, 3] = 1.0, along, 1.0
    return turn


def _turn_x(angle: float, along: float = 0.0) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1, 0, 0, along], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def _printed(cells: Cells) -> Links:
    """The rows of Table 3."""
    named = [dict.fromkeys(("a", "d"), 0.0) for _ in range(6)]
    for name in LENGTHS:
        row = int(name[1]) if name[0] == "a" else int(name[1]) - 1
        named[row][name[0]] = cells["lengths", name, "m"]
    alphas = [cells["3", f"joint {place}", "alpha"] for place in range(1, 7)]
    return tuple((alpha, link["a"], link["d"]) for alpha, link in zip(alphas, named, strict=True))


def _wrist(angles: Array) -> Array:
    """The product whose entries eq. (15) prints: Rz(4) Rz(5) Rx(pi/2) Rz(6) Rx(-pi/2)."""
    quarter = math.pi / 2
    factors = (_turn_z(angles[3]), _turn_z(angles[4]), _turn_x(quarter), _turn_z(angles[5]), _turn_x(-quarter))
    return reduce(np.matmul, factors)


def _chain(links: Links, convention: str, sign: float, joints: Array) -> Array:
    """Frames 0 to 6 of a reading of Table 3: (n, 7, 4, 4)."""
    frames = [np.broadcast_to(np.eye(4), (len(joints), 4, 4))]
    for (alpha, a, d), angles in zip(links, joints.T, strict=True):
        turns, across = _turn_z(angles, d), _turn_x(alpha, sign * a)
        link = turns @ across if convention == "standard" else across @ turns
        frames.append(frames[-1] @ link)
    return np.stack(frames, axis=1)


@cache
def _mean_error(links: Links, convention: str, sign: float) -> float:
    tool = _chain(links, convention, sign, _postures())[:, 6, :3, 3]
    return round(float(np.linalg.norm(tool - _poses()[:, :3, 3], axis=1).mean()), 9)


@cache
def _printed_rank(links: Links) -> int:
    """Of the geometric Jacobian of eq. (9)."""
    frames = _chain(links, "standard", 1.0, _postures()[:100])
    axes, tool = frames[:, :6, :3, 2], frames[:, 6, None, :3, 3]
    linear = np.cross(axes, tool - frames[:, :6, :3, 3])
    return _rank(np.concatenate([linear, axes], axis=2).transpose(0, 2, 1))


def _rank(jacobians: Array) -> int:
    return int(np.linalg.matrix_rank(jacobians, tol=1e-9).max())


def _wrist_centre(poses: Array, lengths: Mapping[str, float] | None = None) -> tuple[Array, Array, Array]:
    """Eq. (10): the wrist centre; the true theta1 of each pose; and y of the centre in frame 1 with it."""
    d6 = UR5.lengths.d6 if lengths is None else lengths["d6"]
    centre = poses[:, :3, 3] - d6 * poses[:, :3, 2]
    theta1 = _postures()[: len(poses), 0]
    return centre, theta1, -centre[:, 0] * np.sin(theta1) + centre[:, 1] * np.cos(theta1)


def _first_three(links: Links, poses: Array) -> Array:
    """Eq. (10) to (14): the first three joints, (n, 4, 3), NaN where there is no root."""
    length = _lengths(links)
    centre, _, _ = _wrist_centre(poses, length)
    x, y, z = centre.T
    aside = length["d4"] + length["d5"]
    found = []
    with np.errstate(invalid="ignore"):
        for shoulder in (1, -1):
            root = shoulder * np.sqrt(x**2 + y**2 - aside**2)
            theta1 = np.arctan2(y, x) - np.arctan2(aside, root)
            along, up = x * np.cos(theta1) + y * np.sin(theta1), z - length["d1"]
            a2, a3 = length["a2"], length["a3"]
            cosine = (along**2 + up**2 - a2**2 - a3**2) / (2 * a2 * a3)
            for elbow in (1, -1):
                sine = elbow * np.sqrt(1 - cosine**2)
                theta3 = np.arctan2(sine, cosine)
                k1, k2 = a2 + a3 * cosine, a3 * sine
                theta2 = np.arctan2(-(k1 * up + k2 * along), k1 * along - k2 * up)
                found.append(np.stack([theta1, theta2, theta3], axis=1))
    return np.stack(found, axis=1)


@cache
def _recovered(links: Links) -> int:
    """Poses of a UR5 whose first three joints come out as those of any of its solutions."""
    wanted, given = _solutions()[:, :, None, :3], _first_three(links, _poses())[:, None]
    apart = np.abs((given - wanted + math.pi) % (2 * math.pi) - math.pi).max(axis=-1)
    return int((apart < SAME_RAD).any(axis=(1, 2)).sum())


@cache
def _right_first_joint(links: Links) -> int:
    """Poses of a UR5 whose theta1 comes out to a degree; its zero may lie half a turn away."""
    wanted, given = _solutions()[:, :, None, 0], _first_three(links, _poses())[:, None, :, 0]
    apart = np.abs((given - wanted + math.pi / 2) % math.pi - math.pi / 2)
    return int((apart < math.radians(1)).any(axis=(1, 2)).sum())


@cache
def _recovered_own(links: Links) -> int:
    """Poses of eq. (9) that can still be reached with the first three joints that come out, for any of the others.

    Joints 4 and 5 then turn about parallel lines: the wrist centre must be d4 + d5 along them, and a3 away from them.
    """
    poses = _chain(links, "standard", 1.0, _postures())[:, 6]
    length = _lengths(links)
    centre, _, _ = _wrist_centre(poses, length)
    reached = np.zeros(len(poses), dtype=bool)
    for joints in _first_three(links, poses).transpose(1, 0, 2):
        usable = ~np.isnan(joints).any(axis=1)
        filled = np.concatenate([np.nan_to_num(joints), np.zeros_like(joints)], axis=1)
        third = _chain(links, "standard", 1.0, filled)[:, 3]
        local = np.einsum("nji,nj->ni", third[:, :3, :3], centre - third[:, :3, 3])
        along = np.abs(local[:, 2] - length["d4"] - length["d5"]) < SAME_RAD
        aside = np.abs(np.hypot(local[:, 0], local[:, 1]) - length["a3"]) < SAME_RAD
        reached |= usable & along & aside
    return int(reached.sum())
