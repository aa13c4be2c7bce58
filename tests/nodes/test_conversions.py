"""Images in messages, and their memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image

from merton.errors import InputError
from merton.world.observation import CameraView, Intrinsics
from merton_nodes.ros import conversions as convert

LENS = Intrinsics(4, 3, 5.0, 6.0, 1.5, 1.0)


def sent(message: object) -> object:
    """The message as another process gets it."""
    return deserialize_message(serialize_message(message), type(message))


@pytest.mark.parametrize("depth_m", [None, np.full((3, 4), 1.25, np.float32)], ids=["colour", "and depth"])
def test_a_view_arrives_as_it_was_sent(depth_m: np.ndarray | None) -> None:
    color = np.arange(3 * 8 * 3, dtype=np.uint8).reshape(3, 8, 3)[:, ::2]  # not in one piece
    color.flags.writeable = False
    view = CameraView("top", color, depth_m, LENS, np.eye(4), 7)
    arrived = convert.view_of(sent(convert.view_message(view)))
    assert (arrived.color == color).all()
    assert (arrived.intrinsics, arrived.stamp_ns) == (LENS, 7)
    if depth_m is None:
        assert arrived.depth_m is None
    else:
        assert arrived.depth_m == pytest.approx(depth_m)


def test_depth_is_whole_millimetres_and_0_where_there_is_none() -> None:
    depth_m = [[0.0, 0.0004, 0.0006, 1.2344], [1.2346, 65.534, 65.6, -1.0], [np.nan, np.inf, -np.inf, 2.0]]
    message = sent(convert.depth_message(np.array(depth_m, np.float32), 0, "top"))
    assert np.frombuffer(message.data, "<u2").tolist() == [0, 0, 1, 1234, 1235, 65534, 0, 0, 0, 0, 0, 2000]


@pytest.mark.parametrize("big", [False, True])
def test_live_depth_of_either_byte_order(big: bool) -> None:
    message = Image(height=1, width=2, encoding="32FC1", step=8, is_bigendian=int(big))
    message.data = np.array([0.5, 1.25], ">f4" if big else "<f4").tobytes()
    depth_m = convert.depth_array(message)
    assert depth_m is not None
    assert depth_m.tolist() == [[0.5, 1.25]]


def test_a_live_camera_info_of_a_fisheye_lens_is_refused_by_its_name() -> None:
    message = convert.camera_info_message(Intrinsics(4, 3, 2.0, 2.0, 1.5, 1.0), 0, "", (0.0,) * 4, "equidistant")
    assert message.distortion_model == "equidistant"
    with pytest.raises(InputError, match=r"lens \(equidistant\) moves pixels"):
        convert.intrinsics_of(message)


FAULTS = """
import resource, sys
import numpy as np
from merton_nodes.ros.runtime import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def use(): return [np.ones(3_000_000, np.uint8) for _ in range(8)]
for _ in range(3):
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is no glibc")
def test_freed_memory_is_reused_without_the_system() -> None:
    """Eight arrays of 3 MB are 5,900 pages; a process that keeps them has no page fault."""
    faults = {
        how: float(
            subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True).stdout
        )
        for how in ("keep", "give back")
    }
    assert faults["keep"] < 60 < faults["give back"]
