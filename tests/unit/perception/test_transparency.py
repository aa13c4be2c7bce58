"""Transparent pictures are shown on white, the same by every reader."""

from __future__ import annotations

import base64
import io
import sys
import tracemalloc
from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.models import serving
from merton.perception.camera.folder import FolderCamera
from merton.perception.dataset import intake
from merton.perception.images import decode_image, read_image
from merton.perception.transparency import _composited
from merton.world.opencv import METADATA

INK = np.zeros((40, 48, 4), np.uint8)
"""Black ink, a stroke in the upper left, on nothing; BGRA. One pixel is half seen through: 200 at 128 of 255."""
INK[4:8, 2:20, 3] = 255
INK[0, 0] = (200, 200, 200, 128)
HALF = 227
"""200 * 128 / 255 + 255 * 127 / 255 = 227.4."""


def seen(image: np.ndarray) -> tuple[int, int, int]:
    """The ink, the ground, and the pixel between."""
    return int(image[5, 5, 0]), int(image[20, 20, 0]), int(image[0, 0, 0])


@pytest.mark.parametrize("ending", [".png", ".webp", ".bmp", ".tiff", ".jp2"])
def test_transparent_pictures_are_on_white(ending: str) -> None:
    lossless = [cv2.IMWRITE_WEBP_QUALITY, 101] if ending == ".webp" else []
    content = cv2.imencode(ending, INK, lossless)[1].tobytes()
    if ending == ".bmp" and not METADATA:
        pytest.skip("OpenCV before 4.12 knows no opacity in BMP files")
    assert seen(decode_image(content)) == (0, 255, HALF)


def test_deep_and_keyed_transparency_is_on_white_too() -> None:
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    deep = cv2.imencode(".png", INK.astype(np.uint16) * 257)[1].tobytes()
    assert seen(decode_image(deep)) == (0, 255, HALF)
    opaque = np.where(INK[..., 3] == 255, 0, 51).astype(np.uint8)
    for mode in ("L", "P", "RGB"):
        stream = io.BytesIO()
        key = (51, 51, 51) if mode == "RGB" else 51
        picture = pillow.fromarray(opaque).convert(mode, **({"palette": 0} if mode == "P" else {}))
        if mode == "P":
            picture = pillow.fromarray(opaque, "L")
            picture.putpalette([channel for grey in range(256) for channel in (grey,) * 3])
        picture.save(stream, "PNG", transparency=key)
        assert seen(decode_image(stream.getvalue())) == (0, 255, 255), mode


@pytest.mark.skipif(not METADATA, reason="OpenCV before 4.12 hands no EXIF data over")
def test_a_transparent_picture_is_turned_as_its_exif_data_say() -> None:
    exif = np.frombuffer(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", np.uint8)  # tag 274: 6
    for ending in (".png", ".webp"):
        stored = cv2.imencodeWithMetadata(
            ending, INK, [cv2.IMAGE_METADATA_EXIF], [exif], [cv2.IMWRITE_WEBP_QUALITY, 101]
        )
        image = decode_image(stored[1].tobytes())
        assert image.shape == (48, 40, 3)
        assert (int(image[0, 39, 0]), int(image[5, 34, 0]), int(image[20, 3, 0])) == (HALF, 0, 255)


def test_putting_on_white_takes_little_memory_and_every_colour_and_opacity_is_right() -> None:
    """c a + (1 - a) 255 in whole numbers; 64 bytes a pixel were taken, 768 MB of 12 million."""
    values = np.arange(256)
    colors, opacities = np.meshgrid(values, values)
    bgra = np.dstack([colors] * 3 + [opacities]).astype(np.uint8)
    alone = _composited(bgra, premultiplied=False)
    assert (alone[..., 0] == (colors * opacities + 127) // 255 + 255 - opacities).all()
    multiplied = _composited(bgra, premultiplied=True)
    assert (multiplied[..., 2] == np.minimum(colors + 255 - opacities, 255)).all()
    large = np.zeros((1000, 1000, 4), np.uint8)
    tracemalloc.start()
    _composited(large, premultiplied=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 1000 * 1000


@pytest.mark.skipif(not METADATA, reason="OpenCV before 4.12 decodes both by one function")
def test_a_picture_that_is_transparent_nowhere_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)
    for ending in (".webp", ".bmp", ".tiff", ".jp2"):
        lossless = [cv2.IMWRITE_WEBP_QUALITY, 101] if ending == ".webp" else []
        content = cv2.imencode(ending, noise, lossless)[1].tobytes()
        right = np.asarray(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR))[..., ::-1]
        with monkeypatch.context() as patched:
            patched.setattr(cv2, "imdecode", None)
            assert (decode_image(content) == right).all(), ending


def test_multiplied_colours_of_a_tiff_are_not_multiplied_again() -> None:
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    ink = INK.copy()
    ink[0, 0, :3] = 100  # 200 * 128 / 255
    for content, kind in ((ink, "assocalpha"), (INK, "unassalpha")):
        for depth in (content, content.astype(np.uint16) * 257):
            stream = io.BytesIO()
            tifffile.imwrite(stream, depth, photometric="rgb", extrasamples=[kind])
            assert seen(decode_image(stream.getvalue())) == (0, 255, HALF), (kind, depth.dtype)
    stream = io.BytesIO()
    tifffile.imwrite(stream, INK[..., 2:], photometric="minisblack", planarconfig="contig", extrasamples=["unassalpha"])
    with pytest.raises(InputError, match=r"grey picture with transparency as TIFF .* save it as PNG"):
        decode_image(stream.getvalue())


def test_every_reader_shows_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = cv2.imencode(".png", INK)[1].tobytes()
    (tmp_path / "ink.png").write_bytes(content)
    url = "data:image/png;base64," + base64.b64encode(content).decode()
    shown = [
        decode_image(content),
        read_image(tmp_path / "ink.png"),
        intake.decode(content),
        FolderCamera(tmp_path)[0].color,
    ]
    shown.append(serving.image_at(url, 10_000))
    monkeypatch.setitem(sys.modules, "PIL", None)
    shown.append(serving.image_at(url, 10_000))
    for image in shown:
        assert seen(image) == (0, 255, HALF)
