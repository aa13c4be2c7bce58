"""A scene as instructions for a person: a list of places, and a drawing of the table seen from above."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.simulation.scene import Scene
from merton.simulation.surfaces import RGB
from merton.world.cell import CellConfig
from merton.world.geometry import Array
from merton.world.observation import Image
from merton.world.shapes import Part, parts_of
from merton.world.tasks import MAT, prop_of

PIXELS_PER_M = 900.0
_GRID_M = 0.1
_PAPER, _LINES, _INK = (250, 250, 248), (215, 215, 210), (40, 40, 40)
_FONT = cv2.FONT_HERSHEY_SIMPLEX


def places(scene: Scene) -> str:
    """One line for each thing: where its centre stands in `base_link` [cm], and how far it is turned [degrees]."""
    lines = [
        f"{name}: {100 * x:.1f} cm ahead, {_beside(y)}"
        + (f", turned {abs(math.degrees(yaw)):.0f} degrees {'left' if yaw > 0 else 'right'}" if yaw else "")
        for name, (x, y, yaw) in scene.placements.items()
    ]
    lines += [f"{name}: {100 * x:.1f} cm ahead, {_beside(y)}" for name, (x, y) in scene.mats.items()]
    return "\n".join(lines)


def draw(scene: Scene, cell: CellConfig) -> Image:
    """The workspace from above, (height, width, 3) uint8 RGB: the robot is below, its left is left.

    Lines are 10 cm apart, labelled in `base_link` [cm]. The bar of a turned thing points along x of its frame.
    """
    low, high = np.array(cell.workspace.min[:2]), np.array(cell.workspace.max[:2])
    height, width = (round(float(side) * PIXELS_PER_M) for side in high - low)
    picture = np.full((height, width, 3), _PAPER, np.uint8)

    def pixel(x_m: float, y_m: float) -> tuple[int, int]:
        return round((high[1] - y_m) * PIXELS_PER_M), round((high[0] - x_m) * PIXELS_PER_M)

    for x_m in np.arange(math.ceil(low[0] / _GRID_M), high[0] / _GRID_M) * _GRID_M:
        cv2.line(picture, pixel(x_m, low[1]), pixel(x_m, high[1]), _LINES, 1)
        _write(picture, f"{100 * x_m:.0f}", pixel(x_m, high[1] - 0.005))
    for y_m in np.arange(math.ceil(low[1] / _GRID_M), high[1] / _GRID_M) * _GRID_M:
        cv2.line(picture, pixel(low[0], y_m), pixel(high[0], y_m), _LINES, 1)
        _write(picture, f"{100 * y_m:.0f}", pixel(low[0] + 0.005, y_m))
    flat = {name: (x, y, 0.0) for name, (x, y) in scene.mats.items()}
    for name, (x_m, y_m, yaw_rad) in {**flat, **scene.placements}.items():
        color, kind = name.split()
        rgb = [round(255 * part) for part in RGB[color]]
        corners = np.array([pixel(*point) for point in _outline(kind, cell) @ _turn(yaw_rad).T + (x_m, y_m)])
        cv2.fillPoly(picture, [corners], rgb, cv2.LINE_AA)
        cv2.polylines(picture, [corners], True, _INK, 1, cv2.LINE_AA)
        if yaw_rad:
            ahead = np.array([x_m, y_m]) + _turn(yaw_rad) @ (0.03, 0.0)
            cv2.line(picture, pixel(x_m, y_m), pixel(*ahead), _INK, 2, cv2.LINE_AA)
        column, row = pixel(x_m, y_m)[0] - 60, int(corners[:, 1].max()) + 18
        _write(picture, f"{name} ({100 * x_m:.1f}, {100 * y_m:.1f})", (column, row))
    return picture


def _beside(y_m: float) -> str:
    return f"{100 * abs(y_m):.1f} cm to the {'left' if y_m >= 0 else 'right'}"


def _turn(yaw_rad: float) -> Array:
    cosine, sine = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[cosine, -sine], [sine, cosine]])


def _outline(kind: str, cell: CellConfig) -> Array:
    """Corners (n, 2) [m] of a thing seen from above, in its own frame: the convex hull of its parts at the start."""
    if kind == MAT:
        return _circle(cell.objects.mat_radius)
    prop = prop_of(kind)
    if prop is None:
        points = [_corners(part) for part in parts_of(kind, 1.0, cell)]
    else:
        sizes = cell.objects.props
        points = [_corners(part) for part in prop.parts(sizes)]
        if prop.moving is not None:
            moving = prop.moving(sizes)
            points += [_corners(part) + moving.at[:2] for part in moving.parts]
    hull = cv2.convexHull(np.concatenate(points).astype(np.float32))  # OpenCV takes no doubles
    return np.asarray(hull[:, 0], np.float64)


def _corners(part: Part) -> Array:
    """Corners (n, 2) [m] of a part seen from above, in the frame of its thing."""
    if part.kind == "box":
        corners = np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)]) * part.size[:2] @ _turn(part.yaw_rad).T
    else:
        corners = _circle(part.size[0])
    return np.asarray(corners + part.at[:2])


def _circle(radius_m: float) -> Array:
    angles = np.linspace(0, 2 * math.pi, 48, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)]) * radius_m


def _write(picture: NDArray[np.uint8], text: str, at: tuple[int, int]) -> None:
    cv2.putText(picture, text, at, _FONT, 0.42, _INK, 1, cv2.LINE_AA)
