"""The dataset builder: input, output, and that a kill leaves no trace."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image as Pillow

from merton import processes
from merton.cognition.models.base import question_for
from merton.cognition.models.describe import Describe
from merton.config import dumps
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.files import locked_folder
from merton.perception.attributes import attributes
from merton.perception.dataset import CATEGORIES, Tags, build, layout, read_tags, verify, write_sample
from merton.perception.dataset.intake import decode
from merton.perception.dataset.reference import JobResult
from merton.perception.dataset.sample import photographs
from merton.perception.dataset.settings import REFERENCE_METRICS, build_settings, code_sha256
from merton.perception.dataset.tables import read_table
from merton.perception.dataset.tags import VERBS
from merton.perception.distortion import DISTORTIONS, distort
from merton.perception.images import encode_image
from merton.perception.quality import measure
from merton.perception.quality.fidelity import psnr
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.tasks import parse
from patience import stretched

TASKS = ["Push the cup", "Pick the cup", "Move the cup", "Place the cup here", "Pour the cup out"]
ENTRY = {"domain": "real", "perspective": "first_person", "object": "container", "background": "table", "tasks": TASKS}
SIZES = {"a.png": (64, 64), "b.jpg": (120, 90), "c.webp": (77, 65)}


def picture(width: int, height: int, seed: int = 0) -> np.ndarray:
    """A smooth colourful image, (height, width, 3) uint8."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)


def encoded(image: np.ndarray, kind: str, **options: object) -> bytes:
    """An image file by Pillow, which the code under test does not use."""
    file = io.BytesIO()
    Pillow.fromarray(image).save(file, kind, **options)
    return file.getvalue()


def write_tags(folder: Path, names: list[str]) -> None:
    """The same valid tags for every image."""
    (folder / "tags.yaml").write_text(dumps(dict.fromkeys(names, ENTRY)))


@pytest.fixture
def references(tmp_path: Path) -> Path:
    """Three small references, one of each format, with tags."""
    folder = tmp_path / "references"
    folder.mkdir()
    for seed, (name, size) in enumerate(SIZES.items()):
        kind = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}[name.split(".")[1]]
        (folder / name).write_bytes(encoded(picture(*size, seed), kind))
    write_tags(folder, list(SIZES))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Building -------------------------------------------------------------------------------------------------------------


def test_the_manifest_describes_every_image(references: Path, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    out = tmp_path / "out"
    result = build(references, out, seed=5, workers=2, on_progress=lambda done, total: progress.append((done, total)))
    total = 3 * len(DISTORTIONS)
    assert (result.references, result.distorted, result.reused, result.refused) == (3, total, 0, {})
    assert progress == [(total // 3 * n, total) for n in (1, 2, 3)]
    assert verify(out) == []

    rows = read_table(out / "manifest.parquet")
    assert [(row["reference_id"], row["distortion"]) for row in rows] == [
        (i, name) for i in "abc" for name in DISTORTIONS
    ]
    assert {row["level"] for row in rows} == {1, 2, 3, 4, 5}
    for row in rows[:: max(1, total // 12)]:
        reference = decode((out / "references" / f"{row['reference_id']}.png").read_bytes())
        expected = distort(reference, row["distortion"], row["level"], np.random.default_rng(row["seed"]))
        found = decode((out / row["file"]).read_bytes())
        np.testing.assert_array_equal(found, expected)
        assert row["psnr"] == psnr(found, reference)
        assert row["blur"] == pytest.approx(attributes(found).blur)
        assert row["value"] == DISTORTIONS[row["distortion"]].levels[row["level"] - 1]
        assert (row["width"], row["height"]) == found.shape[1::-1]

    first = read_table(out / "references.parquet")[0]
    assert (first["source"], first["object"], first["tasks"]) == ("a.png", "container", TASKS)

    again = build(references, tmp_path / "again", seed=5, workers=1)
    assert again == result
    assert contents(tmp_path / "again") == contents(out)


def test_all_levels_hold_the_random_ones(references: Path, tmp_path: Path) -> None:
    for name in ("b.jpg", "c.webp"):
        (references / name).unlink()
    write_tags(references, ["a.png"])
    result = build(references, tmp_path / "all", levels="all", workers=1)
    assert result.distorted == 5 * len(DISTORTIONS)
    build(references, tmp_path / "random", workers=1)
    every = {row["file"]: row["sha256"] for row in read_table(tmp_path / "all" / "manifest.parquet")}
    some = {row["file"]: row["sha256"] for row in read_table(tmp_path / "random" / "manifest.parquet")}
    assert len(every) == 5 * len(some)
    assert some.items() <= every.items()


def test_a_dataset_like_another_has_its_levels_and_seeds(references: Path, tmp_path: Path) -> None:
    """Labels of the other dataset belong to its images, even if a rendering differs by a bit."""
    first = tmp_path / "first"
    build(references, first, seed=5, workers=1)
    (references / "a.png").write_bytes(encoded(picture(64, 64, 7), "PNG"))
    again = tmp_path / "again"
    build(references, again, seed=8, workers=1, like=first / "manifest.parquet")

    def copies(dataset: Path) -> list[tuple[Any, ...]]:
        rows = read_table(dataset / "manifest.parquet")
        return [(row["reference_id"], row["distortion"], row["level"], row["seed"]) for row in rows]

    assert copies(again) == copies(first)
    same = {row["file"] for row in read_table(first / "manifest.parquet")}
    hashes = {row["sha256"] for row in read_table(first / "manifest.parquet") if row["reference_id"] != "a"}
    assert {row["file"] for row in read_table(again / "manifest.parquet")} == same
    assert {row["sha256"] for row in read_table(again / "manifest.parquet") if row["reference_id"] != "a"} == hashes
    with pytest.raises(InputError, match="like; choose another folder"):
        build(references, again, seed=8, workers=1, like=again / "manifest.parquet")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"reference_id": "a"}], "has no column 'distortion'"),
        ([{"reference_id": "a", "distortion": "jpeg", "level": 6, "seed": 1}], "has the level 6; levels are 1 to 5"),
        ([{"reference_id": "a", "distortion": "jpg", "level": 2, "seed": 1}], "unknown distortion 'jpg'"),
        ([{"reference_id": "a", "distortion": "jpeg", "level": 2, "seed": 1}], "has no copies of the reference 'b'"),
    ],
)
def test_a_manifest_that_is_none_of_these_references_is_refused(
    references: Path, tmp_path: Path, rows: list[dict[str, Any]], said: str
) -> None:
    manifest = tmp_path / "manifest.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), manifest)
    with pytest.raises(InputError, match=re.escape(said)):
        build(references, tmp_path / "out", like=manifest)
    assert not (tmp_path / "out").exists()


def test_a_kill_in_the_middle_leaves_no_trace(references: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    script = """
import multiprocessing, os, signal, sys
from pathlib import Path
from merton.perception.dataset import build

def die(done, total):
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), workers=2, on_progress=die)
"""
    # returns when every end of the pipe is closed: the workers have ended too
    killed = subprocess.run(
        [sys.executable, "-c", script, str(references), str(out)],
        capture_output=True,
        text=True,
        timeout=stretched(240),
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    workers = [int(pid) for pid in killed.stdout.split()]
    assert len(workers) == 2
    assert not any(alive(worker) for worker in workers)
    assert not (out / "manifest.parquet").exists()
    with pytest.raises(InputError, match="no finished dataset"):
        verify(out)
    whole = len(list(out.glob("records/*.json")))
    assert whole >= 1
    unfinished = out / "distorted" / "a" / "123.unfinished"
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    unfinished.write_bytes(b"half")

    result = build(references, out, workers=1)
    assert result.reused == len(DISTORTIONS) * whole
    assert verify(out) == []
    build(references, tmp_path / "whole", workers=1)
    assert contents(out) == contents(tmp_path / "whole")


def test_each_worker_of_a_build_computes_in_one_thread(
    references: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of linear algebra in as many processes as there are cores wait for one another more than they work."""
    seen = []

    class Pool:
        def submit(self, work: object, job: Any) -> Future:
            seen.append((self.count, os.environ.get("OPENBLAS_NUM_THREADS")))
            future: Future = Future()
            future.set_result(JobResult(job.id, None, "not today"))
            return future

        def __init__(self, count: int) -> None:
            self.count = count

    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3})
    monkeypatch.setattr(processes, "worker_pool", Pool)
    monkeypatch.setattr(processes, "stop_workers", lambda pool: None)
    assert build(references, tmp_path / "out").references == 0
    assert seen == [(2, "1")] * 3
    assert "OPENBLAS_NUM_THREADS" not in os.environ, "this process is left as it was"


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_two_builds_do_not_share_a_folder(references: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        locked_folder(out, "merton dataset build"),
        pytest.raises(InputError, match="another merton dataset build is at work"),
    ):
        build(references, out, workers=1)
    assert build(references, out, workers=1).references == 3


def test_a_folder_that_cannot_be_written_ends_the_build_with_a_sentence(
    references: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "build.json").write_text(json.dumps(build_settings("random", 0, {})))
    (out / "distorted").write_bytes(b"in the way of the folder, as a full disk would be")
    with pytest.raises(InfrastructureError, match=r"cannot write into .*out': Not a directory.*goes on from there"):
        build(references, out, workers=2)
    (out / "distorted").unlink()
    (references / os.fsdecode(b"caf\xe9.png")).write_bytes(b"")
    (references / f"{'long' * 61}.png").write_bytes((references / "a.png").read_bytes())
    write_tags(references, [*SIZES, f"{'long' * 61}.png"])
    result = build(references, out, workers=1)
    assert (result.references, result.refused) == (4, {"caf\\udce9.png": "no entry in tags.yaml"})
    assert not list(out.rglob("*.unfinished")), "those of a worker that was ended beside the one that failed, too"
    assert verify(out) == []


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        layout.write(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_only_files_that_decide_pixels_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new caption of the gallery refuses no dataset; a new value of a blur does."""
    hashed = code_sha256()
    read_bytes = Path.read_bytes
    for name, same in (("gallery.py", True), ("stream.py", True), ("blur.py", False)):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_bytes", lambda file, name=name: read_bytes(file) + b"#" * (file.name == name))
            assert (code_sha256() == hashed) == same, name


def test_a_second_build_mends_and_follows_its_input(references: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(references, out, workers=1)
    before = contents(out)
    damaged = out / read_table(out / "manifest.parquet")[0]["file"]
    damaged.write_bytes(b"no image")
    assert build(references, out, workers=1).reused == 2 * len(DISTORTIONS)
    assert contents(out) == before

    (references / "b.jpg").unlink()
    write_tags(references, ["a.png", "c.webp"])
    assert build(references, out, workers=1).references == 2
    assert verify(out) == []
    assert not [name for name in contents(out) if name.startswith(("distorted/b/", "references/b", "records/b"))]


def test_other_settings_and_foreign_folders_are_refused(
    references: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="neither empty nor a dataset"):
        build(references, foreign)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "build.json").write_text('{"seed": 1}')
    with pytest.raises(InputError, match="other levels and seed"):
        build(references, tmp_path / "out", seed=2)
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / "build.json").write_text(json.dumps(build_settings("random", 0, {})))
    with monkeypatch.context() as patched:  # as after an edit of a distortion: images of the old one are no use
        patched.setattr(sys.modules["merton.perception.dataset.settings"], "code_sha256", lambda: "of other code")
        with pytest.raises(InputError, match="holds a dataset with other code_sha256; choose another folder"):
            build(references, tmp_path / "changed")
    with pytest.raises(InputError, match="all, random"):
        build(references, tmp_path / "new", levels="some")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no folder"):
        build(tmp_path / "nowhere", tmp_path / "new")


# Verifying ------------------------------------------------------------------------------------------------------------


def test_verify_finds_every_difference(references: Path, tmp_path: Path) -> None:
    for name in ("b.jpg", "c.webp"):
        (references / name).unlink()
    write_tags(references, ["a.png"])
    out = tmp_path / "out"
    build(references, out, workers=1)
    first, second = (row["file"] for row in read_table(out / "manifest.parquet")[:2])
    content = bytearray((out / first).read_bytes())
    content[len(content) // 2] ^= 1
    (out / first).write_bytes(content)
    (out / second).unlink()
    (out / "distorted" / "stray.png").write_bytes(b"")
    assert verify(out) == [
        f"{first} has changed",
        f"{second} is missing",
        "distorted/stray.png is not part of the dataset",
    ]
    (out / "manifest.parquet").write_bytes(b"PAR1")
    assert verify(out) == ["manifest.parquet has changed"]


def test_pyarrow_is_asked_for_before_anything_is_done(
    references: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"Parquet needs pyarrow.*: .*merton\[dataset\]"):
        build(references, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Intake ---------------------------------------------------------------------------------------------------------------


SEVERAL = "no single image: it has 2 frames or pages; save the one that is meant as a PNG file"


def test_broken_images_are_refused_with_a_reason(references: Path, tmp_path: Path) -> None:
    whole = {name: (references / name).read_bytes() for name in SIZES}
    flipped = bytearray(whole["a.png"])
    flipped[len(flipped) // 2] ^= 255
    frames = [Pillow.fromarray(picture(32, 32, seed)) for seed in range(2)]
    moving = {}
    for kind in ("PNG", "WEBP"):
        file = io.BytesIO()
        frames[0].save(file, kind, save_all=True, append_images=frames[1:])
        moving[kind] = file.getvalue()
    bad = {
        "cut_png.png": (whole["a.png"][:-20], "the PNG file is cut off"),
        "cut_jpg.jpg": (whole["b.jpg"][:-200], "the JPEG file is damaged: premature end of JPEG file"),
        "cut_webp.webp": (whole["c.webp"][:-20], "the WEBP file is cut off"),
        "flipped.png": (bytes(flipped), "the PNG file is broken: a checksum is wrong"),
        "moving.png": (moving["PNG"], SEVERAL),
        "moving_too.webp": (moving["WEBP"], SEVERAL),
        "empty.png": (b"", "the file is empty"),
        "text.jpg": (b"not a picture", "not a PNG, JPEG or WEBP file"),
        "still.gif": (encoded(picture(32, 32), "GIF"), "not a PNG, JPEG or WEBP file"),
        "small.png": (encoded(picture(15, 40), "PNG"), "too small: 15 x 40 pixels, at least 16 x 16 are needed"),
        "wide.png": (
            encoded(np.zeros((16, 16400, 3), np.uint8), "PNG"),
            "too large: 16400 x 16 pixels, at most 16383 a side are possible",
        ),
        "a.webp": (whole["c.webp"], "same name as a.png"),
    }
    for name, (content, _) in bad.items():
        (references / name).write_bytes(content)
    (references / "without_entry.png").write_bytes(whole["a.png"])
    write_tags(references, [*SIZES, *bad])
    result = build(references, tmp_path / "out", workers=1)
    expected = {**{name: reason for name, (_, reason) in bad.items()}, "without_entry.png": "no entry in tags.yaml"}
    assert result.refused == expected
    assert result.references == 3
    with (tmp_path / "out" / "refused.csv").open() as file:
        assert {row["file"]: row["reason"] for row in csv.DictReader(file)} == expected
    assert verify(tmp_path / "out") == []


def test_a_name_that_a_spreadsheet_would_run_is_no_formula_in_the_list_of_refusals(tmp_path: Path) -> None:
    folder = tmp_path / "references"
    folder.mkdir()
    tags = (
        "  domain: real\n  perspective: first_person\n  object: block\n  background: table\n"
        "  tasks: [Push it, Pick it, Move it, Place it, Pour it]\n"
    )
    (folder / "tags.yaml").write_text("".join(f'"{name}":\n{tags}' for name in ("a.png", "=1+1.png", "@x.png")))
    (folder / "a.png").write_bytes(encode_image(np.zeros((16, 16, 3), np.uint8)))
    for name in ("=1+1.png", "@x.png"):
        (folder / name).write_text("text")
    moves: list[tuple[int, int]] = []
    result = build(folder, tmp_path / "out", workers=1, on_progress=lambda *move: moves.append(move))
    assert set(result.refused) == {"=1+1.png", "@x.png"}
    assert moves[-1][0] == moves[-1][1]
    with (tmp_path / "out" / "refused.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["file", "'=1+1.png", "'@x.png"]


def test_references_that_were_distorted_before_are_refused(references: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sharp = cv2.resize(rng.integers(0, 256, (30, 40, 3), np.uint8), (160, 120), interpolation=cv2.INTER_NEAREST)
    noisy = np.clip(sharp + rng.normal(0, 60, sharp.shape), 0, 255).astype(np.uint8)
    for name, image in (("sharp", sharp), ("blurred", cv2.GaussianBlur(sharp, (0, 0), 4)), ("noisy", noisy)):
        (references / f"{name}.png").write_bytes(encoded(image, "PNG"))
    for name in SIZES:
        (references / name).unlink()
    write_tags(references, ["sharp.png", "blurred.png", "noisy.png"])
    worst = {name: measure(name, sharp) + 0.1 for name in REFERENCE_METRICS}
    result = build(references, tmp_path / "out", workers=1, bounds=worst)
    assert result.references == 1
    assert set(result.refused) == {"blurred.png", "noisy.png"}
    assert "distorted already: blur_effect is" in result.refused["blurred.png"]
    assert "distorted already: noise_sigma is" in result.refused["noisy.png"]
    with pytest.raises(InputError, match="other bounds"):
        build(references, tmp_path / "out")
    with pytest.raises(InputError, match="choose one of: blur_effect, noise_sigma"):
        build(references, tmp_path / "new", bounds={"ssim": 1.0})
    with pytest.raises(InputError, match="finite"):
        build(references, tmp_path / "new", bounds={"noise_sigma": float("nan")})
    assert not (tmp_path / "new").exists()


def test_pixels_survive_intake() -> None:
    image = picture(33, 21)
    np.testing.assert_array_equal(decode(encoded(image, "PNG")), image)
    np.testing.assert_array_equal(decode(encoded(image, "WEBP", lossless=True)), image)
    np.testing.assert_array_equal(decode(encode_image(image)), image)
    assert decode(encoded(image[..., 0], "PNG")).shape == (21, 33, 3)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 4}], ids=str)
def test_a_jpeg_with_a_hole_is_refused_and_bytes_after_a_whole_one_are_ignored(options: dict) -> None:
    """A decoder paints grey over a hole and goes on; phones append a film or a second picture to a whole JPEG."""
    noise = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    whole = encoded(noise, "JPEG", **options)
    third = len(whole) // 3
    for damaged in (
        whole[:third] + whole[2 * third :],  # a lost piece
        whole[:third] + bytes(third) + whole[2 * third :],  # a sector of zeros
        whole[: 2 * third] + b"\xff\xd9",  # a cut with an end marker after it
    ):
        with pytest.raises(InputError, match=r"the JPEG file is damaged: [a-z0-9]"):
            decode(damaged)
    np.testing.assert_array_equal(decode(whole + b"film\xff\xda and no end marker"), decode(whole))
    assert decode(encoded(noise[..., 0], "JPEG", **options)).shape == noise.shape
    file = io.BytesIO()
    Pillow.fromarray(noise).convert("CMYK").save(file, "JPEG", **options)
    assert decode(file.getvalue()).shape == noise.shape


def test_a_jpeg_with_a_careless_header_is_accepted() -> None:
    """Phones and editors write them; the decoder warns of the header, and the picture is whole."""
    whole = encoded(np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8), "JPEG")
    scan = whole.index(b"\xff\xda")
    last_coefficient = scan + 2 + int.from_bytes(whole[scan + 2 : scan + 4], "big") - 2
    for place, value in ((last_coefficient, 0), (whole.index(b"JFIF") + 5, 3)):
        careless = whole[:place] + bytes([value]) + whole[place + 1 :]
        np.testing.assert_array_equal(decode(careless), decode(whole))
        with pytest.raises(InputError, match="the JPEG file is cut off"):
            decode(careless[: len(whole) // 2])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_no_content_makes_intake_fail_otherwise(kind: str) -> None:
    whole = encoded(picture(20, 18), kind)
    rng = np.random.default_rng(0)
    for length in range(len(whole)):
        if kind == "WEBP" or length < len(whole) - 2:
            with pytest.raises(InputError):
                decode(whole[:length])
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= int(rng.integers(1, 256))
        try:
            assert decode(bytes(damaged)).dtype == np.uint8
        except InputError:
            continue


# Tags -----------------------------------------------------------------------------------------------------------------

GOOD = """\
# a comment
a.png:
  domain: real
  perspective: first_person
  object: food
  background: kitchen
  tasks:
  - Push the apple
  - Pick the apple up
  - Move the apple
  - Place the apple
  - Twist the stem off
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("Pick the apple up", "Grab the apple", 9, "must begin with one of Cover, Insert.*'Grab the apple'"),
        ("Pick the apple up", "Pick", 9, "does not say what to handle"),
        ("Pick the apple up", "Push the apple", 2, "same task twice"),
        ("  - Twist the stem off\n", "", 2, "must have 5 tasks, got 4"),
        ("  - Twist the stem off\n", "  - Twist it\n  - Pull it\n", 2, "must have 5 tasks, got 6"),
        ("object: food", "object: fruit", 5, "unknown object 'fruit'; choose one of: block"),
        ("  object: food\n", "", 2, "has no object"),
        ("object: food", "object: [food]", 5, "a single text"),
        ("  domain: real", "  domain: real\n  color: red", 4, "unknown entry 'color'"),
        ("  domain: real", "  domain: real\n  domain: real", 4, "stands twice"),
        ("  - Push the apple\n", "  - Push the apple\n  }\n", 9, "not YAML"),
        ("a.png:\n", "a.png: 3\nb.png:\n", 2, "a mapping of tags"),
    ],
)
def test_a_mistake_in_yaml_is_refused_with_its_line(tmp_path: Path, old: str, new: str, line: int, text: str) -> None:
    file = tmp_path / "tags.yaml"
    file.write_text(GOOD)
    assert list(read_tags(file)) == ["a.png"]
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=rf"^tags\.yaml, line {line}: .*{text}"):
        read_tags(file)


def test_csv_says_the_same_as_yaml_and_names_lines_too(tmp_path: Path) -> None:
    (tmp_path / "tags.yaml").write_text(GOOD)
    tags = read_tags(tmp_path / "tags.yaml")
    assert tags == {"a.png": Tags("real", "first_person", "food", "kitchen", tags["a.png"].tasks)}
    assert [task.split()[0] for task in tags["a.png"].tasks] == ["Push", "Pick", "Move", "Place", "Twist"]
    header = ["file", *CATEGORIES, *(f"task_{n}" for n in range(1, 6))]
    row = ["a.png", "real", "first_person", "food", "kitchen", *tags["a.png"].tasks]
    file = tmp_path / "tags.csv"
    file.write_text(f"{','.join(header)}\n{','.join(row)}\n")
    assert read_tags(file) == tags
    four = ["b.png", *row[1:9], ""]
    for wrong, text in ((row[:6], "10 columns"), (four, "must have 5 tasks, got 4"), (row, "has an entry")):
        file.write_text("\n".join(",".join(cells) for cells in (header, row, wrong)))
        with pytest.raises(InputError, match=f"line 3: .*{text}"):
            read_tags(file)
    file.write_text("file,tasks\n")
    with pytest.raises(InputError, match="line 1: the columns must be"):
        read_tags(file)


def test_tags_and_images_must_belong_together(references: Path, tmp_path: Path) -> None:
    write_tags(references, [*SIZES, "gone.png"])
    with pytest.raises(InputError, match=re.escape("names 'gone.png'")):
        build(references, tmp_path / "out")
    (references / "tags.csv").write_text("")
    with pytest.raises(InputError, match=r"tags\.yaml and tags\.csv"):
        build(references, tmp_path / "out")
    for name in ("tags.csv", "tags.yaml"):
        (references / name).unlink()
    with pytest.raises(InputError, match="cannot read the tag file"):
        build(references, tmp_path / "out", tasks=references / "tags.yaml")


def test_references_without_a_tag_file_have_neither_tags_nor_tasks(references: Path, tmp_path: Path) -> None:
    out, tagged = tmp_path / "out", tmp_path / "tagged"
    for name in ("b.jpg", "c.webp"):
        (references / name).unlink()
    write_tags(references, ["a.png"])
    build(references, tagged, workers=1)
    (references / "tags.yaml").unlink()
    (references / "notes.txt").write_text("no image")
    result = build(references, out, workers=1)
    assert (result.references, result.refused) == (1, {"notes.txt": "not a PNG, JPEG or WEBP file"})
    empty = {**dict.fromkeys(CATEGORIES, ""), "tasks": []}
    expected = [row | empty for row in read_table(tagged / "references.parquet")]
    assert read_table(out / "references.parquet") == expected
    assert read_table(tagged / "manifest.parquet") == read_table(out / "manifest.parquet"), "tags change no picture"
    assert verify(out) == []


# Sample ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(renders: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample of six scenes a split: they have every verb, and every tag that the cell can have."""
    out = tmp_path_factory.mktemp("sample") / "sample"
    calls: list[tuple[int, int]] = []
    assert write_sample(out, 6, lambda done, total: calls.append((done, total))) == 36 + len(list(photographs()))
    assert calls == [(done, 36) for done in range(1, 37)]
    return out


def rendered(sample: Path) -> dict[str, Tags]:
    return {name: tags for name, tags in read_tags(sample / "tags.yaml").items() if tags.domain == "simulation"}


def test_the_sample_is_a_valid_set_of_references(sample: Path) -> None:
    files = {path.name: path for path in sample.glob("*.png")}
    assert set(read_tags(sample / "tags.yaml")) == set(files)
    assert len({decode(path.read_bytes()).tobytes() for path in files.values()}) == len(files)
    entries = rendered(sample).values()
    assert {entry.object for entry in entries} == {"block", "container", "tool"}
    assert {entry.background for entry in entries} == {"table", "room", "plain"}
    assert {entry.perspective for entry in entries} == {"first_person", "third_person"}
    with pytest.raises(InputError, match="not an empty folder"):
        write_sample(sample, 1)


def test_the_tasks_of_the_sample_are_the_five_of_the_scene(sample: Path) -> None:
    entries = rendered(sample)
    assert {task.split()[0] for entry in entries.values() for task in entry.tasks} == set(VERBS)
    for name, entry in entries.items():
        split, seed, _ = name.removesuffix(".png").split("_")
        scenes = [make_scene(f"{split}-{verb}", int(seed)) for verb in verbs_of(int(seed))]
        assert [parse(task) for task in entry.tasks] == [scene.command for scene in scenes]
        assert [scene.difficulty for scene in scenes] == [1, 2, 3, 4, 5]


def test_describe_tells_the_five_tasks_of_every_picture_apart(sample: Path) -> None:
    vlm = Describe()
    pictures = {name: entry for name, entry in rendered(sample).items() if name.endswith("_top.png")}
    assert len(pictures) == 12
    for name, entry in pictures.items():
        image = decode((sample / name).read_bytes())
        assert len({vlm.answer([image], question_for(task)).text for task in entry.tasks}) == 5, name
