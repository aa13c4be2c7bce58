"""Image files to arrays and back."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.models import serving
from merton.perception.camera.folder import FolderCamera
from merton.perception.dataset import intake
from merton.perception.images import WRITTEN, decode_image, encode_image, read_image, write_image

IMAGE = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8), (0, 0), 2)


def test_a_png_keeps_every_pixel(tmp_path: Path) -> None:
    write_image(IMAGE, tmp_path / "image.png")
    assert (read_image(tmp_path / "image.png") == IMAGE).all()
    assert (decode_image(encode_image(IMAGE)) == IMAGE).all()
    assert (cv2.imread(str(tmp_path / "image.png"))[..., ::-1] == IMAGE).all()


@pytest.mark.parametrize("name", ["image.png", "image.JPG", "image.jpeg", "image.webp", "image.bmp"])
def test_the_bytes_are_those_that_opencv_writes(tmp_path: Path, name: str) -> None:
    write_image(IMAGE, tmp_path / name)
    cv2.imwrite(str(tmp_path / f"peer_{name}"), IMAGE[..., ::-1])
    assert (tmp_path / name).read_bytes() == (tmp_path / f"peer_{name}").read_bytes()


def test_a_lower_jpeg_quality_makes_a_smaller_file() -> None:
    assert len(encode_image(IMAGE, ".jpg", jpeg_quality=50)) < len(encode_image(IMAGE, ".jpg"))


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read '.*gone\.png': No such file"):
        read_image(tmp_path / "gone.png")
    for content in (b"", b"not an image", encode_image(IMAGE)[:40]):
        (tmp_path / "broken.png").write_bytes(content)
        with pytest.raises(InputError, match=r"broken\.png' is not an intact image"):
            read_image(tmp_path / "broken.png")
    with pytest.raises(InputError, match=r"cannot write '.*nowhere/image\.png': No such file"):
        write_image(IMAGE, tmp_path / "nowhere" / "image.png")
    with pytest.raises(InputError, match=r"an image of the kind '\.txt'; use \.png"):
        write_image(IMAGE, tmp_path / "image.txt")
    with pytest.raises(InputError, match="an image of the kind 'image'; use"):
        write_image(IMAGE, tmp_path / "image")


def frames(*shades: int) -> list[Image.Image]:
    return [Image.new("RGB", (32, 24), (shade, 90, 10)) for shade in shades]


@pytest.mark.parametrize("ending", ["png", "webp", "tiff"])
def test_a_file_of_several_pictures_is_no_single_image(tmp_path: Path, ending: str) -> None:
    """Written by Pillow: an animated PNG, an animated WEBP, a TIFF of three pages."""
    path = tmp_path / f"moving.{ending}"
    first, *others = frames(10, 120, 250)
    first.save(path, save_all=True, append_images=others)
    with pytest.raises(InputError, match=r"is no single image: it has 3 frames or pages; save the one that is meant"):
        read_image(path)
    first.save(path, save_all=True)  # the same form with one
    assert read_image(path).shape == (24, 32, 3)


def test_a_smaller_copy_in_a_tiff_is_no_page(tmp_path: Path) -> None:
    """As cameras put one behind the picture: NewSubfileType 1 of TIFF 6.0, section 8."""
    first, small = frames(10, 120)
    small.encoderinfo = {"tiffinfo": {254: 1}}
    first.save(tmp_path / "x.tiff", save_all=True, append_images=[small])
    assert tuple(read_image(tmp_path / "x.tiff")[0, 0]) == (10, 90, 10)


@pytest.mark.parametrize("ending", WRITTEN)
def test_what_is_written_can_be_read(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"x{ending.upper()}"
    write_image(IMAGE, file)
    assert read_image(file).shape == IMAGE.shape


@pytest.mark.parametrize("ending", [".avif", ".gif", ".ppm", ".exr", ".hdr", ".pfm"])
def test_what_could_not_be_read_is_not_written(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match=rf"an image of the kind '\{ending}'; use \.png, or one of: \.jpg"):
        write_image(IMAGE, tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ending", "width"), [(".webp", 16_384), (".jpg", 65_501)])
def test_an_image_that_a_format_cannot_hold_is_refused(tmp_path: Path, ending: str, width: int) -> None:
    """Limits of WEBP (14 bits a side) and libjpeg; before, an empty file was written."""
    with pytest.raises(InputError, match=rf"{width} x 2 pixels cannot be written as \{ending}; use \.png"):
        write_image(np.zeros((2, width, 3), np.uint8), tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())


def test_distort_refuses_an_ending_before_the_work(tmp_path: Path) -> None:
    words = ["distort", str(tmp_path / "none.png"), "--name", "jpeg", "--level", "1", "-o", str(tmp_path / "x.avif")]
    ended = CliRunner().invoke(app, words)
    assert isinstance(ended.exception, InputError)
    assert "the kind '.avif'" in str(ended.exception)
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


def test_a_transparent_picture_is_turned_as_its_exif_data_say() -> None:
    exif = np.frombuffer(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", np.uint8)  # tag 274: 6
    for ending in (".png", ".webp"):
        stored = cv2.imencodeWithMetadata(
            ending, INK, [cv2.IMAGE_METADATA_EXIF], [exif], [cv2.IMWRITE_WEBP_QUALITY, 101]
        )
        image = decode_image(stored[1].tobytes())
        assert image.shape == (48, 40, 3)
        assert (int(image[0, 39, 0]), int(image[5, 34, 0]), int(image[20, 3, 0])) == (HALF, 0, 255)


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
