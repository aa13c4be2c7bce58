"""The meaning of a policy's numbers as data: an entry of a catalogue file, or a part of an exported data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from merton.config import Model, one_of, read_text, validated
from merton.errors import InputError, MertonError
from merton.models.catalogue import NamedEntry
from merton.world.action import FRAMES

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
INFO = Path("meta", "info.json")
"""File of a data set of LeRobot's format that describes its features."""
FEATURE, KEY = "action", "convention"
"""The entry of an export stands in `INFO` under features, `FEATURE`, `KEY`: LeRobot passes a feature's further keys on,
and refuses to merge data sets whose features differ; of a further key of the whole file 0.6 warns."""


def _arms() -> tuple[str, ...]:
    from merton.decision.models.arms import arm_names

    return arm_names()


class Length(Model):
    """The unit of translations: the raw number `raw` is a motion of `m` metres; clipped beyond if `clip`."""

    raw: Positive = 1.0
    m: Positive = 1.0
    clip: bool = False


class Angle(Model):
    """The unit of angles: the raw number `raw` is `rad` radians; clipped beyond if `clip`. Degrees: 180 is 3.14159."""

    raw: Positive = 1.0
    rad: Positive = 1.0
    clip: bool = False


class Rotation(Angle):
    """The unit of a rotation, and its form: a rotation vector, or roll, pitch, yaw about fixed axes."""

    form: Literal["rotation_vector", "roll_pitch_yaw"]


class PoseDelta(Model):
    """The columns are x, y, z, three numbers of a rotation, gripper: the hand's motion from row to row.

    Attributes:
        translation, rotation: their units.
        frame: base_link (x forward, y left, z up), or tcp, the tool's own frame.
    """

    translation: Length = Length()
    rotation: Rotation
    frame: Annotated[str, one_of("frame", lambda: FRAMES)] = "base_link"


class Joints(Model):
    """The columns are a number for each joint of an arm, then the gripper.

    Attributes:
        arm: whose joints they are; its kinematics give the motion of the hand.
        are: absolute angles, or the changes from row to row, such as velocities times the row's duration.
        unit: of those numbers; of the state, too, if they are absolute, else the state's joints are in radians.
        tool_m: distance of the point whose motion counts from the arm's hand (a UR's flange) along z [m].
    """

    arm: Annotated[str, one_of("arm", _arms)]
    are: Literal["absolute", "changes"]
    unit: Angle = Angle()
    tool_m: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @property
    def count(self) -> int:
        """How many joints the arm has."""
        from merton.decision.models.arms import arm_named

        return len(arm_named(self.arm).axes)

    @model_validator(mode="after")
    def _absolute_ones_have_no_end(self) -> Joints:
        if self.are == "absolute" and self.unit.clip:
            raise ValueError("absolute joints are not clipped: clip is for changes")
        return self


class Gripper(Model):
    """The number of the gripper, in actions and in the state: `closed` and `open` at the ends, clipped beyond.

    `open_beyond`: on the side of `open` of this number it is open, else closed, with nothing in between.
    """

    closed: Finite
    open: Finite
    open_beyond: Finite | None = None

    @model_validator(mode="after")
    def _ends_differ(self) -> Gripper:
        if self.closed == self.open:
            raise ValueError(f"closed and open are both {self.open:g}")
        if self.open_beyond is not None and not min(self.closed, self.open) <= self.open_beyond <= max(
            self.closed, self.open
        ):
            raise ValueError(f"open_beyond {self.open_beyond:g} is not between closed and open")
        return self

    def opened(self, fraction: float) -> float:
        """The gripper's number at 0 (closed) .. 1 (open)."""
        return self.closed + fraction * (self.open - self.closed)


class ConventionEntry(NamedEntry):
    """The meaning of one family's output; `merton.decision.models.conventions` converts by it.

    Attributes:
        meaning: columns, units and frame, in one line; "" for a line that is made of the fields.
        source: publication, or the data set.
        rate_hz: rows a second [Hz].
        pose, joints: one of them: the columns before the gripper's.
        gripper: the column behind them.
        padded_to: length of a row that is filled up, beside the unfilled one; 0 for none.
        normalised: the weights' own output is normalised by quantiles or deviations of its data set, or "".
    """

    meaning: str = ""
    source: str = ""
    rate_hz: Positive
    pose: PoseDelta | None = None
    joints: Joints | None = None
    gripper: Gripper
    padded_to: Annotated[int, Field(ge=0)] = 0
    normalised: Literal["", "quantiles", "deviations"] = ""

    @model_validator(mode="after")
    def _has_one_form(self) -> ConventionEntry:
        if (self.pose is None) == (self.joints is None):
            raise ValueError("a row is either pose or joints: name one of them")
        count = 7 if self.joints is None else self.joints.count + 1
        if self.padded_to and self.padded_to <= count:
            raise ValueError(f"padded_to {self.padded_to} is not more than the {count} columns of a row")
        return self

    def described(self) -> str:
        """The meaning in one line."""
        if self.meaning:
            return self.meaning
        if self.joints is not None:
            kind = "absolute joint angles" if self.joints.are == "absolute" else "changes of the joint angles"
            row = f"{kind} of a {self.joints.arm} [{_unit(self.joints.unit, 'rad', self.joints.unit.rad)}]"
        else:
            assert self.pose is not None
            moves, turns = self.pose.translation, self.pose.rotation
            row = (
                f"delta x y z [{_unit(moves, 'm', moves.m)}], {turns.form.replace('_', ' ')} "
                f"[{_unit(turns, 'rad', turns.rad)}] in {self.pose.frame}"
            )
        return f"{row}, gripper {self.gripper.closed:g} closed {self.gripper.open:g} open; {self.rate_hz:g} Hz"


def _unit(scale: Length | Angle, unit: str, value: float) -> str:
    if scale.raw == value and not scale.clip:
        return unit
    return f"{'±' if scale.clip else ''}{scale.raw:g} is {value:g} {unit}"


def of_dataset(where: str) -> ConventionEntry:
    """The entry that `merton export lerobot` wrote into a data set.

    Args:
        where: the data set's folder, or its info.json; from the working folder, as checkpoints are.

    Raises:
        InputError: there is no such file, or no entry in it, or a wrong one.
    """
    path = Path(where).expanduser()
    path = path / INFO if path.is_dir() else path
    try:
        info: Any = json.loads(read_text(path, ".json"))
        found = info["features"][FEATURE][KEY]
    except MertonError as error:
        raise InputError(str(error)) from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON") from None
    except (KeyError, TypeError):
        raise InputError(
            f"{path} names no convention under features, {FEATURE}: `merton export lerobot` writes it; of a data set "
            "of another origin, write one into the catalogue's file"
        ) from None
    return validated(ConventionEntry, json.dumps(found), f"{path}: features, {FEATURE}, {KEY}")
