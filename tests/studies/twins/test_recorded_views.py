"""What a twin is shown of a recorded picture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.camera import d455_intrinsics
from merton.recording.images import png, png16
from merton.world.cell import load_cell
from merton_studies.twins.recorded import Picture
from merton_studies.twins.twin import _view


@pytest.mark.parametrize(("frame", "is_refused"), [("top_depth", True), ("top_color", False), ("", False)])
def test_depth_of_another_frame_is_not_taken_for_aligned(frame: str, is_refused: bool) -> None:
    content = bytes(png(np.zeros((48, 64, 3), np.uint8)))
    color = SimpleNamespace(frame_id="top_color", format="rgb8; png compressed bgr8", data=content)
    plane = bytes(png16(np.full((48, 64), 1500, np.uint16)))
    depth = SimpleNamespace(frame_id=frame, format="16UC1; png compressed", data=plane)
    picture = Picture(color, depth, d455_intrinsics(64, 48), 0)
    decision: Any = SimpleNamespace(joints_rad=np.zeros(6))
    if is_refused:
        with pytest.raises(
            InputError, match="depth is in the frame 'top_depth', colour in 'top_color': give depth that"
        ):
            _view("top", picture, decision, load_cell(), True)
    else:
        depth_m = _view("top", picture, decision, load_cell(), True).depth_m
        assert depth_m is not None
        assert np.allclose(depth_m, 1.5)
    assert _view("top", picture, decision, load_cell(), False).depth_m is None
