"""Image files to arrays and back."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
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
