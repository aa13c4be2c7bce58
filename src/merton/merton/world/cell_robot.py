"""The sections of `config/cell.yaml` on the arm, its tool and its gripper. Metres, radians, seconds, newtons."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from merton.config import one_of
from merton.world.arms import ARMS

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

TOOLS = ("robotiq_2f_140",)
"""The tools that the arm can have; the sections `tool` and `gripper` of the file are about it."""


class Section(BaseModel):
    """A section of the file; every key is required, so a misspelt one is noticed. Further keys belong to the xacro."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _open_before_closed(section: Any) -> Any:
    if section.register_open >= section.register_closed:
        raise ValueError(
            f"register_open {section.register_open} must be below register_closed {section.register_closed}"
        )
    return section


class Robot(Section):
    """The arm and its tool, by name.

    `home_joints` are the joint angles [rad], shoulder pan to wrist 3, in which the arm starts, if they are not those of
    its entry. `calibration` is the file of `ur_calibration` about this very arm, from the folder of the cell's file;
    without it the arm is as drawn.
    """

    # keys with a default too are noticed when misspelt
    model_config = ConfigDict(extra="forbid")

    model: Annotated[str, one_of("arm", lambda: ARMS)]
    tool: Annotated[str, one_of("tool", lambda: TOOLS)]
    home_joints: tuple[Number, Number, Number, Number, Number, Number] | None = None
    calibration: Annotated[str, Field(min_length=1)] | None = None


class Tool(Section):
    """Distance from `tool0` to the point between the closed pads along z of `tool0` [m]."""

    tcp_from_tool0_z: Positive


class GripperSettings(Section):
    """Opening fully open [m], its fastest change [m/s], the force between the pads [N], the wait after a motion [s].

    `register_open` and `register_closed` are the real gripper's position register at both ends; see
    `execution.robots.gripper` for where the defaults, those of a 2F-140, come from.
    `linkage` is not in the file, see `load_cell`: fingers on the linkage of the real 2F-140, whose tips run on an arc.
    """

    # keys with a default too are noticed when misspelt
    model_config = ConfigDict(extra="forbid")

    stroke: Positive
    max_speed: Positive
    max_force: Positive
    settle_s: NotNegative
    register_open: Annotated[int, Field(ge=0, le=255)] = 13
    register_closed: Annotated[int, Field(ge=0, le=255)] = 230
    linkage: bool = False

    _ends = model_validator(mode="after")(_open_before_closed)
