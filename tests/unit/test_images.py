"""Image files to arrays and back."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.perception.images import decode_image, encode_image, read_image, write_image

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
