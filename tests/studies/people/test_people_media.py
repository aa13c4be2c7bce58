"""Prepared media: pixels and nothing else, prepared once, of sizes that tell nothing; reels from every source."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.images import decode_image, encode_image, read_image
from merton_studies.people.media.image import in_parallel, prepare_image
from merton_studies.people.media.reel import frames_of, read_reel, reel_of_pictures
from merton_studies.people.media.sizes import make_alike
from merton_studies.people.media.video import evenly, reel_of_video

SHADES = (0, 40, 80, 120, 160, 200)


def plain(shade: int, height: int = 48, width: int = 64) -> np.ndarray:
    return np.full((height, width, 3), shade, np.uint8)


def noise(height: int = 48, width: int = 64) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)


def write_video(file: Path, codec: str = "libx264", rate_hz: int = 10, pts: tuple[int, ...] | None = None) -> Path:
    """A video of one frame for each of `SHADES`, at times `pts` [1 / rate_hz]."""
    av = pytest.importorskip("av")
    with av.open(str(file), "w") as made:
        made.metadata["title"] = "secret-model"
        stream = made.add_stream(codec, rate=rate_hz)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index, shade in enumerate(SHADES):
            frame = av.VideoFrame.from_ndarray(plain(shade), format="rgb24")
            frame.pts = index if pts is None else pts[index]
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    return file


def shades(file: Path) -> list[int]:
    """The nearest of `SHADES` to each frame of a reel."""
    means = [float(decode_image(content).mean()) for content in frames_of(file)]
    return [min(SHADES, key=lambda shade: abs(shade - mean)) for mean in means]


def test_an_image_is_its_pixels_alone(tmp_path: Path) -> None:
    source = tmp_path / "secret-model_0001.png"
    content = encode_image(noise())
    text = b"tEXtmodel\0secret-model"
    source.write_bytes(content[:33] + (len(text) - 4).to_bytes(4, "big") + text + b"\0\0\0\0" + content[33:])
    file, width, height = prepare_image(source, tmp_path / "media")
    assert (width, height) == (64, 48)
    np.testing.assert_array_equal(read_image(file), noise())
    assert b"secret" not in file.read_bytes()
    assert "secret" not in file.name
    stamp = file.stat().st_mtime_ns
    assert prepare_image(source, tmp_path / "media") == (file, 64, 48)
    assert prepare_image(noise(), tmp_path / "media")[1:] == (64, 48)
    assert file.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_what_is_no_image_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.png").write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.png"):
        prepare_image(tmp_path / "broken.png", tmp_path / "media")


def test_sizes_tell_nothing(tmp_path: Path) -> None:
    from merton_studies.people.item import Medium

    large = (noise(200, 200), plain(7, 200, 200))
    prepared = in_parallel(lambda image: prepare_image(image, tmp_path), large)
    media = [Medium("image", "image", *parts) for parts in prepared]
    reels = [reel_of_pictures([image, image], 2.0, tmp_path).medium("video") for image in large]
    assert media[0].file.stat().st_size > media[1].file.stat().st_size
    make_alike([*media, *reels])
    assert media[0].file.stat().st_size == media[1].file.stat().st_size
    assert reels[0].file.stat().st_size == reels[1].file.stat().st_size
    np.testing.assert_array_equal(read_image(media[1].file), plain(7, 200, 200))
    assert len(list(frames_of(reels[1].file))) == 2


def test_in_parallel_keeps_the_order_and_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    assert in_parallel(lambda value: value * 2, [3, 1, 2], lambda *step: told.append(step)) == [6, 2, 4]
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(("codec", "name"), [("libx264", "a.mp4"), ("mpeg4", "a.avi"), ("libvpx-vp9", "a.webm")])
def test_a_video_becomes_its_frames(tmp_path: Path, codec: str, name: str) -> None:
    reel = reel_of_video(write_video(tmp_path / name, codec), tmp_path / "media")
    assert (reel.width_px, reel.height_px, reel.frames, reel.rate_hz) == (64, 48, 6, 10.0)
    assert shades(reel.file) == list(SHADES)
    assert read_reel(reel.file) == reel
    assert b"secret" not in reel.file.read_bytes()


def test_a_reel_is_prepared_once_and_equal_sources_give_equal_bytes(tmp_path: Path) -> None:
    video = write_video(tmp_path / "a.mp4")
    one, other = (reel_of_video(video, tmp_path / folder).file for folder in ("one", "other"))
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())
    stamp = one.stat().st_mtime_ns
    assert reel_of_video(video, tmp_path / "one").file.stat().st_mtime_ns == stamp
    one.write_bytes(one.read_bytes()[:100])  # as after a loss of power
    assert reel_of_video(video, tmp_path / "one").frames == 6


def test_uneven_times_become_an_even_rate() -> None:
    a, b, c = (plain(shade) for shade in SHADES[:3])
    shown = list(evenly([(5.0, a), (5.1, b), (5.41, c)], 10.0))
    assert [image[0, 0, 0] for image in shown] == [0, 40, 40, 40, 80]
    fast = list(evenly([(index / 60, plain(index)) for index in range(7)], 30.0))
    assert len(fast) == 4


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("list.m3u8", b"#EXTM3U\n/etc/passwd\n", "use one of: .mp4"),
        ("list.mp4", b"#EXTM3U\n/etc/passwd\n", "no intact video"),
        ("empty.mp4", b"", "no intact video"),
        ("gone.mp4", None, "cannot read"),
    ],
)
def test_what_is_no_video_is_refused_by_name(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    pytest.importorskip("av")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}.*{said}|{said}.*{name}"):
        reel_of_video(tmp_path / name, tmp_path / "media")


def test_pictures_of_several_sizes_are_no_reel(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="picture 2 has 64 x 60 pixels, those before it 64 x 48"):
        reel_of_pictures([plain(0), plain(0, height=60)], 2.0, tmp_path)
    with pytest.raises(InputError, match="no pictures"):
        reel_of_pictures([], 2.0, tmp_path)


def test_a_large_picture_is_made_smaller(tmp_path: Path) -> None:
    reel = reel_of_pictures([cv2.resize(noise(), (2560, 1440))], 1.0, tmp_path)
    assert (reel.width_px, reel.height_px) == (1280, 720)
