"""Frames of videos: which are chosen, at which times, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numbered_videos import CODECS, number_of, write_numbered

from merton.errors import InputError

pytest.importorskip("av", reason="PyAV is not installed")

from merton.perception.videos import frames_at, frames_evenly, open_video


@pytest.mark.parametrize("ending", CODECS)
def test_frames_at_equal_distances_are_those_of_floor_linspace_in_every_container(tmp_path: Path, ending: str) -> None:
    """As lmms-eval takes them: numpy.linspace(0, last, n, dtype=int)."""
    file = write_numbered(tmp_path / f"v{ending}", 40, rate_hz=10)
    for count in (1, 2, 7, 32, 40, 64):
        found = frames_evenly(file, count)
        wanted = [19] if count == 1 else sorted(set(np.linspace(0, 39, count, dtype=int).tolist()))
        assert [number_of(image) for _, image in found] == wanted
        assert [round(time_s, 3) for time_s, _ in found] == [number / 10 for number in wanted]


def test_stamps_name_the_frame_that_a_player_shows_in_any_order(tmp_path: Path) -> None:
    file = write_numbered(tmp_path / "v.mp4", 20, rate_hz=10)
    assert [number_of(image) for _, image in frames_at(file, [1.95, 0.0, 0.09, 0.1, 1.95])] == [19, 0, 0, 1, 19]


def test_frames_of_a_variable_rate_are_chosen_by_time_not_by_number(tmp_path: Path) -> None:
    times_s = [0.0, 0.1, 0.2, 2.0, 2.1, 5.0, 5.05, 5.1, 8.0]
    file = write_numbered(tmp_path / "v.mp4", 9, times_s=times_s)
    assert [number_of(image) for _, image in frames_evenly(file, 5)] == [0, 3, 4, 7, 8]  # at 0, 2, 4, 6, 8 s
    assert [number_of(image) for _, image in frames_at(file, [1.9, 4.99, 5.0])] == [2, 4, 5]


def test_a_frame_that_stands_still_is_taken_once(tmp_path: Path) -> None:
    file = write_numbered(tmp_path / "v.mp4", 3, times_s=[0.0, 0.1, 10.0])
    assert [number_of(image) for _, image in frames_evenly(file, 6)] == [0, 1, 2]


def test_a_video_that_was_filmed_upright_is_turned(tmp_path: Path) -> None:
    """The matrix of the track header of an MP4 (ISO/IEC 14496-12, 8.3.2) is set to a quarter turn."""
    file = write_numbered(tmp_path / "v.mp4", 3)
    content = bytearray(file.read_bytes())
    at = content.index(b"tkhd") + 4 + 40  # version and flags, four times, two reserved, layer, group, volume
    one, minus = (1 << 16).to_bytes(4, "big"), (2**32 - (1 << 16)).to_bytes(4, "big")
    nothing, unit = bytes(4), (1 << 30).to_bytes(4, "big")
    content[at : at + 36] = nothing + one + nothing + minus + nothing + nothing + nothing + nothing + unit
    file.write_bytes(content)
    image = frames_at(file, [0.2])[0][1]
    assert image.shape == (128, 96, 3), "width and height change places"
    assert number_of(np.ascontiguousarray(np.rot90(image))) == 2, "a quarter turn with the clock was undone"


@pytest.mark.parametrize("ending", CODECS)
def test_a_video_that_is_cut_off_is_refused(tmp_path: Path, ending: str) -> None:
    whole = write_numbered(tmp_path / f"whole{ending}", 40).read_bytes()
    file = tmp_path / f"cut{ending}"
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"is cut off|is no intact video"):
        frames_evenly(file, 4)


def test_damage_no_pictures_and_other_files_are_one_sentence(tmp_path: Path) -> None:
    file = write_numbered(tmp_path / "v.mp4", 10)
    for name, content, reason in (
        ("empty.mp4", b"", "is no intact video"),
        ("text.mp4", b"no video at all", "is no intact video"),
        ("v.mpg", b"", "is no video of a kind that is read; use one of: .mp4"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=reason):
            frames_evenly(tmp_path / name, 4)
    with pytest.raises(InputError, match="No such file"):
        frames_evenly(tmp_path / "absent.mp4", 4)
    for time_s in (-0.1, 1.2, float("nan")):
        with pytest.raises(InputError, match=re.escape("has no frame at") + ".*: it lasts 1.000 s"):
            frames_at(file, [time_s])
    with pytest.raises(InputError, match="at least one frame"):
        frames_evenly(file, 0)


def test_a_file_with_sound_alone_has_no_pictures(tmp_path: Path) -> None:
    import av

    with av.open(str(tmp_path / "sound.mp4"), "w") as made:
        stream = made.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        made.mux(stream.encode(frame))
        made.mux(stream.encode())
    with pytest.raises(InputError, match="has no pictures in it"), open_video(tmp_path / "sound.mp4"):
        pass
