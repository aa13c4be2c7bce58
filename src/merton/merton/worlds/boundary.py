"""Checks of all that crosses the boundary to another process: what a world gives, and what it is given.

Each raises an error of one sentence: InfrastructureError for the world's, InputError for the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InfrastructureError, InputError
from merton.world.action import ROWS, ActionChunk
from merton.world.action_space import ActionSpace
from merton.world.geometry import Array
from merton.world.observation import Image
from merton.worlds.base import RobotState
from merton.worlds.description import WorldCamera, WorldDescription

RIGID = 1e-4
"""How far a rotation may be from an orthogonal matrix: single precision and a quaternion in between are well below."""
ROUNDING = 1e-6
"""How far a share may lie beyond 0..1; it is then clipped."""
TOLERANCE_S = 1e-6
"""Between a policy's period and a world's [s]."""
STATE = frozenset(RobotState.__dataclass_fields__) - {"time_ns"}


class Given:
    """Checks of the values that a world gave.

    Args:
        name: of the world.
        trial: such as "task push, scene 3"; "" before one has begun.
        row: the last one that was carried out.
    """

    def __init__(self, name: str, trial: str, row: int) -> None:
        self._name, self._trial, self._row = name, trial, row

    def fault(self, what: str, found: object) -> InfrastructureError:
        """The error for a value that is not what it must be."""
        place = f"row {self._row} of {self._trial}" if self._trial else "its start"
        return InfrastructureError(f"world {self._name!r} gave {found} at {place}: {what}")

    def numbers(self, field: str, value: object, shape: tuple[int | None, ...] | None) -> Array:
        """Finite float64 of a shape; None there is any length, and None for the shape any shape."""
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
            raise self.fault(f"{field} is an array of numbers", _kind(value))
        if shape is not None and not _fits(value.shape, shape):
            wanted = ", ".join("n" if length is None else str(length) for length in shape)
            raise self.fault(f"{field} has the shape ({wanted})", f"the shape {value.shape}")
        found = value.astype(np.float64)
        if not np.isfinite(found).all():
            where = tuple(np.argwhere(~np.isfinite(found))[0].tolist())
            index = f"[{', '.join(map(str, where))}]" if where else ""
            raise self.fault("only finite numbers are usable", f"{found[where]} in {field}{index}")
        return found

    def path(self, value: object, rows: int) -> Array:
        """The points (rows, 3) after each of the last rows, or (0, 3)."""
        if not isinstance(value, np.ndarray) or value.shape not in ((rows, 3), (0, 3)):
            raise self.fault(f"a path has a point (3,) for each of {rows} rows, or none", _kind(value))
        points = []
        for row, point in enumerate(value, self._row - rows + 1):
            points.append(Given(self._name, self._trial, row).numbers("point", point, (3,)))
        return np.reshape(points, (-1, 3))

    def share(self, field: str, value: object) -> float:
        """A number 0..1."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault(f"{field} is a number 0..1", _kind(value))
        if not -ROUNDING <= value <= 1 + ROUNDING:  # not of NaN either
            raise self.fault(f"{field} is a number 0..1", f"{field} {value:g}")
        return min(max(float(value), 0.0), 1.0)

    def whole(self, field: str, value: object, most: int) -> int:
        """A whole number 0..most."""
        if type(value) is not int or not 0 <= value <= most:
            raise self.fault(f"{field} is a whole number 0..{most}", f"{field} {value!r}")
        return value

    def flag(self, field: str, value: object) -> bool:
        """True or False."""
        if not isinstance(value, bool):
            raise self.fault(f"{field} is true or false", _kind(value))
        return value

    def text(self, field: str, value: object) -> str:
        """A text."""
        if not isinstance(value, str):
            raise self.fault(f"{field} is a text", _kind(value))
        return value

    def transform(self, field: str, value: object) -> Array:
        """A rigid transform (4, 4)."""
        matrix = self.numbers(field, value, (4, 4))
        rotation = matrix[:3, :3]
        off = max(np.abs(rotation.T @ rotation - np.eye(3)).max(), np.abs(matrix[3] - (0, 0, 0, 1)).max())
        if off > RIGID or np.linalg.det(rotation) < 0:
            raise self.fault(f"{field} is a rigid transform", f"a matrix that is none (off by {off:.2g})")
        return matrix

    def picture(self, camera: WorldCamera, value: object) -> Image:
        """(height, width, 3) uint8 of the size that is described."""
        return self._pixels(camera, value, np.dtype(np.uint8), 3)

    def depth(self, camera: WorldCamera, value: object) -> NDArray[np.float32]:
        """(height, width) float32, finite and not negative [m]."""
        found = self._pixels(camera, value, np.dtype(np.float32))
        if not (np.isfinite(found) & (found >= 0)).all():
            raise self.fault(f"the depth of {camera.name!r} is finite, and 0 where unknown", "no such depth")
        return found

    def mask(self, camera: WorldCamera, value: object) -> NDArray[np.bool_]:
        """(height, width) bool."""
        return self._pixels(camera, value, np.dtype(np.bool_))

    def state(self, description: WorldDescription, value: object) -> RobotState:
        """The state of a robot; what is absent is None."""
        if not isinstance(value, dict):
            raise self.fault("a state is a dictionary", _kind(value))
        if unknown := sorted(set(value) - STATE):
            raise self.fault(f"a state has only {', '.join(sorted(STATE))}", f"the key {unknown[0]!r}")
        there = {key: item for key, item in value.items() if item is not None}
        checked: dict[str, Any] = {}
        columns = len(description.action.columns)
        for key, item in there.items():
            if key == "base_from_tool":
                checked[key] = self.transform(key, item)
            elif key == "gripper_open":
                checked[key] = self.share(key, item)
            elif key == "point":
                checked[key] = tuple(self.numbers(key, item, (3,)).tolist())
            elif key == "extra":
                if not isinstance(item, dict):
                    raise self.fault("extra is a dictionary", _kind(item))
                checked[key] = {name: self.numbers(f"extra[{name!r}]", one, None) for name, one in item.items()}
            else:
                checked[key] = self.numbers(key, item, (columns,) if key == "rest_row" else (None,))
        return RobotState(**checked)

    def _pixels(self, camera: WorldCamera, value: object, dtype: np.dtype[Any], *channels: int) -> NDArray[Any]:
        shape = (camera.height_px, camera.width_px, *channels)
        if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != shape:
            found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else _kind(value)
            raise self.fault(f"pictures of camera {camera.name!r} are {dtype} {shape}", found)
        return value


def refuse_other_form(name: str, action: ActionSpace, chunk: ActionChunk) -> None:
    """Raise InfrastructureError for a chunk that is not of a world's form: the policy was not made for it, no score."""
    model, columns = chunk.model or "the policy", [column.name for column in action.columns]
    frame = ROWS if action.form == "rows" else "base_link"
    if chunk.frame != frame or chunk.deltas.shape[1] != len(columns):
        raise InfrastructureError(
            f"{model} gives rows of {chunk.deltas.shape[1]} numbers in {chunk.frame!r}, and the world {name} takes "
            f"{len(columns)} in {frame!r}: {', '.join(columns)}"
        )
    if len(chunk.deltas) and abs(chunk.step_s - action.period_s) > TOLERANCE_S:
        raise InfrastructureError(
            f"a row of {model} lasts {chunk.step_s:g} s, and one of the world {name} {action.period_s:g} s"
        )


def rows_of(description: WorldDescription, rows: ArrayLike) -> Array:
    """The caller's rows (n, columns) as finite float64; raises InputError for others."""
    names = [column.name for column in description.action.columns]
    try:
        found = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 2 or found.shape[1] != len(names):
        raise InputError(f"rows have the shape (n, {len(names)}): {', '.join(names)}; got {np.shape(found)}")
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0].tolist()
        raise InputError(f"row {row} has {found[row, column]} in the column {names[column]!r}: a row is finite")
    return found


def differences(before: WorldDescription, now: WorldDescription) -> list[str]:
    """Each value in which two descriptions differ, such as "mujoco 3.1.0 -> 3.9.0", versions first."""
    rest = [_flat(one.model_dump(mode="json", exclude={"versions"})) for one in (before, now)]
    return [*_differing(before.versions, now.versions), *_differing(*rest)]


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} {before.get(key, 'absent')} -> {now.get(key, 'absent')}"
        for key in {**before, **now}
        if key not in before or key not in now or before[key] != now[key]
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Nested values by their path; items of a list by their names, if they have any."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)) and value and all(isinstance(item, dict) for item in value):
        items = {str(item.get("name", index)): item for index, item in enumerate(value)}.items()
    else:
        return {path: value}
    return {
        key: one for name, item in items for key, one in _flat(item, f"{path}.{name}" if path else str(name)).items()
    }


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        want is None or length == want for length, want in zip(shape, wanted, strict=True)
    )


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
