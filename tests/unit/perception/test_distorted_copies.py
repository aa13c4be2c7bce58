"""Distorted copies of a folder of images, and the manifest of them."""

from __future__ import annotations

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.files import file_sha256
from merton.perception.dataset.copies import Setting, copy_seed, distort_folder, parse_settings
from merton.perception.distortion import DISTORTIONS, distort
from merton.perception.images import read_image

NAMES = ("a.png", "sub/b.jpg.png")
NOISE, BLUR = Setting("white_noise", 3.0), Setting("lens_blur", 2.5)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with a.png, sub/b.jpg, a text, a hidden picture and a broken one."""
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    rng = np.random.default_rng(3)
    for name in ("a.png", "sub/b.jpg", ".c.png"):
        cv2.imwrite(str(folder / name), rng.integers(0, 255, (32, 40, 3), dtype=np.uint8))
    (folder / "notes.txt").write_text("no picture")
    (folder / "broken.png").write_bytes((folder / "a.png").read_bytes()[:200])
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Content of every file by its path in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifest(out: Path) -> list[dict[str, str]]:
    """The rows of a manifest."""
    return list(csv.DictReader((out / "manifest.csv").read_text().splitlines()))


def test_settings() -> None:
    assert parse_settings(["lens_blur@2.5", "12@3", "white_noise@3"]) == (BLUR, NOISE)
    assert parse_settings(["jpeg"]) == tuple(Setting("jpeg", float(level)) for level in (1, 2, 3, 4, 5))
    assert parse_settings(["all@3"]) == tuple(Setting(name, 3.0) for name in DISTORTIONS)
    assert len(parse_settings(["all"])) == 5 * len(DISTORTIONS)
    with pytest.raises(UnknownNameError, match="unknown distortion 'lens_blurr'; did you mean 'lens_blur'"):
        parse_settings(["lens_blurr@3"])
    for wrong in ("lens_blur@6", "lens_blur@nan", "lens_blur@", "jpeg@2.5", "lens_blur@x"):
        with pytest.raises(InputError, match=f"level of '{wrong.partition('@')[0]}' must be"):
            parse_settings([wrong])
    with pytest.raises(InputError, match="'late' acts on a succession of pictures"):
        parse_settings(["late@3"])


def test_every_image_of_a_folder_gets_every_copy(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = distort_folder(images, out, [NOISE, BLUR], seed=7, workers=1)
    assert (result.images, result.copies, result.reused) == (2, 4, 0)
    assert result.failed == {"broken.png": "the PNG file is cut off"}
    assert result.other_files == (".c.png", "notes.txt")
    assert [row["source"] for row in csv.DictReader((out / "manifest.csv").open())] == 2 * ["a.png"] + 2 * ["sub/b.jpg"]
    outputs = {row["output"] for row in manifest(out)}
    assert outputs == {f"{kind}/{name}" for kind in ("white_noise/3", "lens_blur/2.5") for name in NAMES}
    assert outputs | {"manifest.csv", "left_out.csv", "distort.json"} == set(files(out))
    for row in manifest(out):
        assert row["source_sha256"] == file_sha256(images / row["source"])
        assert row["sha256"] == file_sha256(out / row["output"])
        assert int(row["seed"]) == copy_seed(7, row["source"], Setting(row["distortion"], float(row["level"])))
        rng = np.random.default_rng(int(row["seed"]))
        expected = distort(read_image(images / row["source"]), row["distortion"], float(row["level"]), rng)
        assert np.array_equal(read_image(out / row["output"]), expected)
    assert "notes.txt" in (out / "left_out.csv").read_text()


def test_seeds_differ_by_image_type_level_and_seed() -> None:
    """Golden: a copy of today is that of tomorrow."""
    changed = (copy_seed(0, "b.png", NOISE), copy_seed(0, "a.png", BLUR), copy_seed(1, "a.png", NOISE))
    seed = copy_seed(0, "a.png", NOISE)
    assert len({seed, copy_seed(0, "a.png", Setting("white_noise", 4.0)), *changed}) == 5
    assert seed == 6964680759859474925


def test_the_same_bytes_with_two_workers(images: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        distort_folder(images, tmp_path / str(workers), [NOISE], workers=workers)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_a_call_that_was_stopped_is_finished_by_the_same_one(images: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    distort_folder(images, whole, [NOISE, BLUR], workers=1)

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distort_folder(images, out, [NOISE, BLUR], workers=1, on_progress=stop)
    with (out / "manifest.csv").open("a") as torn:
        torn.write('sub/b.jpg,"12')
    (out / "white_noise/3/.1.0.unfinished").write_bytes(b"half")
    assert distort_folder(images, out, [NOISE, BLUR], workers=1).reused == 2
    assert files(out) == files(whole)
    (out / "white_noise/3/a.png").write_bytes(b"changed")
    assert distort_folder(images, out, [NOISE, BLUR], workers=1).reused == 3
    assert files(out) == files(whole)


def test_a_copy_follows_its_image(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    distort_folder(images, out, [NOISE], workers=1)
    before = files(out)
    (images / "sub/b.jpg").unlink()
    cv2.imwrite(str(images / "a.png"), np.zeros((32, 40, 3), np.uint8))
    assert distort_folder(images, out, [NOISE], workers=1).reused == 0
    assert not (out / "white_noise/3/sub/b.jpg.png").exists()
    assert files(out)["white_noise/3/a.png"] != before["white_noise/3/a.png"]


def test_two_images_of_one_output_are_not_mixed_up(images: Path, tmp_path: Path) -> None:
    cv2.imwrite(str(images / "sub/b.jpg.png"), np.zeros((32, 40, 3), np.uint8))
    result = distort_folder(images, tmp_path / "out", [NOISE], workers=1)
    assert result.failed["sub/b.jpg.png"] == "its copies would have the names of those of sub/b.jpg"


def test_what_is_no_folder_of_images_is_one_sentence(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="there is no file or folder"):
        distort_folder(tmp_path / "none", out, [NOISE])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no image"):
        distort_folder(tmp_path / "empty", out, [NOISE])
    assert not out.exists()
    distort_folder(images, out, [NOISE], workers=1)
    with pytest.raises(InputError, match="holds distorted copies with other distortions; choose another folder"):
        distort_folder(images, out, [BLUR], workers=1)
    with pytest.raises(InputError, match="with other source"):
        distort_folder(images / "sub", out, [NOISE], workers=1)
    with pytest.raises(InputError, match="neither empty nor distorted copies"):
        distort_folder(images, images, [NOISE], workers=1)


def test_copies_inside_the_folder_are_not_distorted_again(images: Path) -> None:
    out = images / "out"
    for _ in range(2):
        assert distort_folder(images, out, [NOISE], workers=1).copies == 2


def test_the_command(images: Path, tmp_path: Path) -> None:
    words = ["distort", str(images), "--distort", "white_noise@3", "--out", str(tmp_path / "out"), "--workers", "1"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 1, "an image cannot be read"
    assert "2 images x 1: 2 copies; 1 could not be read" in ended.stdout
    assert "broken.png: the PNG file is cut off" in ended.stderr
    assert "left out, hidden or no images by their ending: .c.png, notes.txt" in ended.stderr
    (images / "broken.png").unlink()
    ended = CliRunner().invoke(app, words)
    assert (ended.exit_code, "of which 2 were there already" in ended.stdout) == (0, True)
    one = tmp_path / "one.png"
    CliRunner().invoke(app, ["distort", str(images / "a.png"), "--distort", "white_noise@3", "-o", str(one)])
    assert np.array_equal(read_image(one), read_image(tmp_path / "out/white_noise/3/a.png")), "one law of seeds"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "`merton distort` needs --distort TYPE@LEVEL, such as --distort lens_blur@3, and --out"),
        ("--distort nope@3", "unknown distortion 'nope'"),
        ("--distort jpeg --out x.png", "x.png is one file, for 5 copies: give --out a folder"),
        ("--level 3 --out x.png", "--level needs --name"),
    ],
)
def test_mistakes_of_the_command(images: Path, words: str, sentence: str) -> None:
    ended = CliRunner().invoke(app, ["distort", str(images / "a.png"), *words.split()])
    assert isinstance(ended.exception, InputError)
    assert sentence in str(ended.exception)
