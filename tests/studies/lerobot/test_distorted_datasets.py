"""Distorted copies of a dataset: the deal of conditions, the copies' form, and calls that were killed."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lerobot_datasets import CAMERAS, FRAMES, episode_of, frames_of, write_dataset
from merton.cli.main import app
from merton.episodes.shown import ShownPart
from merton.errors import InputError
from merton.perception.distortion.setting import UNDISTORTED, Setting
from merton_studies.lerobot.conditions import Plan, dealt, pictures_of
from merton_studies.lerobot.distorted import distort_dataset
from merton_studies.lerobot.folder import Episode, LeRobotFolder
from patience import until

pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dataset)")

NOISE, DARK, LATE = Setting("white_noise", 3), Setting("max_darken", 5), Setting("late", 5)
PLAN = Plan((NOISE, DARK), seed=3)


def many(count: int, tasks: int) -> list[Episode]:
    return [Episode(number, 5, (f"task {number % tasks}",), Path("a"), {}) for number in range(count)]


@pytest.mark.parametrize("count", [1, 7, 30, 101])
@pytest.mark.parametrize("clean", [None, 0.0, 0.25, 0.5])
def test_conditions_are_dealt_evenly(count: int, clean: float | None) -> None:
    plan = Plan((NOISE, DARK, LATE), clean, seed=1)
    found = dealt(many(count, 4), plan)
    assert list(found) == list(range(count))
    counts = Counter(found.values())
    assert abs(counts[UNDISTORTED] - count * plan.clean_share) <= 1
    distorted = [counts[setting] for setting in plan.settings]
    assert max(distorted) - min(distorted) <= 1
    for task in range(4):
        of_task = Counter(found[number] for number in range(task, count, 4))
        spread = [of_task[setting] for setting in plan.settings]
        assert max(spread) - min(spread) <= 2


def test_the_deal_is_of_the_seed() -> None:
    episodes = many(40, 2)
    assert dealt(episodes, PLAN) == dealt(episodes[::-1], PLAN), "the order in which they are listed counts"
    assert dealt(episodes, PLAN) != dealt(episodes, Plan(PLAN.settings, seed=4))


def test_a_level_may_be_drawn_for_each_episode() -> None:
    found = dealt(many(60, 1), Plan((Setting("jpeg", 1),), 0.0, 0, one_level=True))
    assert {setting.level for setting in found.values()} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((),), "name at least one distortion"),
        (((UNDISTORTED,),), "each with a level of 1 to 5"),
        (((NOISE,), 1.0), "below 1, got 1.0"),
        (((Setting("depth_holes", 3),),), "is a fault of depth"),
    ],
)
def test_a_plan_without_sense_is_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Plan(*arguments)


@pytest.fixture(
    scope="module", params=[("v3.0", "video"), ("v2.1", "video"), ("v3.0", "image"), ("v2.1", "image")], ids=" ".join
)
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset and its copy."""
    version, stored = request.param
    folder = tmp_path_factory.mktemp("copies")
    source = write_dataset(folder / "toy", version, stored=stored)
    distort_dataset(source, folder / "copy", PLAN, cameras=CAMERAS[:1], workers=1)
    return source, folder / "copy"


def test_pictures_are_distorted_by_their_condition(copies: tuple[Path, Path]) -> None:
    source, copy = (LeRobotFolder(path) for path in copies)
    conditions = dealt(source.episodes, PLAN)
    assert set(conditions.values()) == {UNDISTORTED, NOISE, DARK}
    for episode in source.episodes:
        shown = pictures_of(conditions[episode.index], episode.index, PLAN.seed)
        before = dict(source.pictures(episode, CAMERAS[0]))
        after = dict(copy.pictures(copy.episodes[episode.index], CAMERAS[0]))
        for frame, picture in before.items():
            wanted = shown.show(frame, CAMERAS[0], picture).astype(int)
            is_video = source.cameras[CAMERAS[0]].is_video
            assert np.abs(after[frame] - wanted).mean() < (6 if is_video else 1e-9), (episode.index, frame)


def test_all_else_is_the_original(copies: tuple[Path, Path]) -> None:
    source, copy = copies
    before, after = LeRobotFolder(source), LeRobotFolder(copy)
    assert after.version == before.version
    assert [vars(one) for one in after.episodes] == [vars(one) for one in before.episodes]
    names = [*before.vectors(prefix="observation."), "action", "timestamp", "index", "task_index"]
    for one in before.episodes:
        for name, values in before.rows(one, names).items():
            np.testing.assert_array_equal(after.rows(one, names)[name], values)
        other = [np.abs(a.astype(int) - b).max() for (_, a), (_, b) in
                 zip(before.pictures(one, CAMERAS[1]), after.pictures(one, CAMERAS[1]), strict=True)]  # fmt: skip
        assert max(other) == 0, "a camera that was not chosen"
    schema = [parquet.read_schema(next(path.glob("data/*/*.parquet"))) for path in copies]
    assert schema[0].equals(schema[1])
    if next(iter(before.cameras.values())).is_video:
        for file in source.rglob("data/*/*.parquet"):
            assert (copy / file.relative_to(source)).read_bytes() == file.read_bytes()
    assert not [file for file in copy.rglob("*") if file.name.startswith(".")]


def test_videos_keep_their_form(copies: tuple[Path, Path]) -> None:
    source, copy = copies
    av = pytest.importorskip("av")
    for file in source.rglob("*.mp4"):
        forms = []
        for path in (file, copy / file.relative_to(source)):
            with av.open(str(path)) as opened:
                stream = opened.streams.video[0]
                forms.append((stream.codec.canonical_name, stream.pix_fmt, stream.width, stream.height,
                              float(stream.average_rate), stream.frames))  # fmt: skip
        assert forms[0] == forms[1]
        times = [[time_s for time_s, _ in frames_of(path)] for path in (file, copy / file.relative_to(source))]
        np.testing.assert_allclose(times[0], times[1], atol=1e-4)  # LeRobot's tolerance


def test_statistics_are_those_of_the_copy(copies: tuple[Path, Path]) -> None:
    source, copy = copies
    folder = LeRobotFolder(copy)
    pixels = {one.index: np.stack([picture for _, picture in folder.pictures(one, CAMERAS[0])]) / 255.0
              for one in folder.episodes}  # fmt: skip
    for number, (before, after) in enumerate(zip(statistics(source), statistics(copy), strict=True)):
        found = after[CAMERAS[0]]
        np.testing.assert_allclose(np.ravel(found["mean"]), pixels[number].mean((0, 1, 2)), atol=1e-6)
        np.testing.assert_allclose(np.ravel(found["std"]), pixels[number].std((0, 1, 2)), atol=1e-6)
        assert np.shape(found["max"]) == (3, 1, 1)
        assert {key: value for key, value in after.items() if key != CAMERAS[0]} == {
            key: value for key, value in before.items() if key != CAMERAS[0]
        }
    if folder.stats:
        whole = np.concatenate(list(pixels.values()))
        np.testing.assert_allclose(np.ravel(folder.stats[CAMERAS[0]]["mean"]), whole.mean((0, 1, 2)), atol=1e-6)
        assert folder.stats["action"] == LeRobotFolder(source).stats["action"]


def statistics(path: Path) -> list[dict[str, Any]]:
    """Of each episode: feature to name to values."""
    lines = path / "meta/episodes_stats.jsonl"
    if lines.is_file():
        return [json.loads(line)["stats"] for line in lines.read_text().splitlines()]
    rows = parquet.read_table(path / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    found: list[dict[str, Any]] = []
    for row in rows:
        found.append({})
        for name, values in row.items():
            if name.startswith("stats/"):
                _, key, statistic = name.split("/")
                found[-1].setdefault(key, {})[statistic] = values
    return found


def test_the_card_says_what_was_done(copies: tuple[Path, Path]) -> None:
    _, copy = copies
    card = (copy / "README.md").read_text()
    assert card.startswith("---\nlicense: apache-2.0\n"), "the licence stays"
    assert "| `white_noise@3` | 2 |" in card
    about = json.loads((copy / "meta/merton.json").read_text())
    assert (about["seed"], about["cameras"], about["distortions"]) == (
        3,
        [CAMERAS[0]],
        ["white_noise@3", "max_darken@5"],
    )
    assert set(about["sha256"]) <= {str(file.relative_to(copy)) for file in copy.rglob("*")}
    with (copy / "meta/merton_episodes.csv").open() as file:
        rows = list(csv.DictReader(file))
    named = {int(row["episode"]): Setting(row["distortion"], int(row["level"])) for row in rows}
    assert named == dealt(LeRobotFolder(copy).episodes, PLAN)


def test_a_fault_of_time_shows_earlier_frames_of_the_episode(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "toy", episodes=2, stored="image")
    distort_dataset(source, tmp_path / "copy", Plan((LATE,), 0.0), workers=1)
    copy = LeRobotFolder(tmp_path / "copy")
    for episode in copy.episodes:
        true = episode_of(episode.index)[2][CAMERAS[0]]
        for frame, picture in copy.pictures(episode, CAMERAS[0]):
            np.testing.assert_array_equal(picture, true[max(0, frame - 2)])  # two late, and none of another episode


def test_a_part_of_the_frames(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "toy", episodes=2, stored="image")
    distort_dataset(source, tmp_path / "copy", Plan((DARK,), 0.0, 0, ShownPart(None, {0, 1})), workers=1)
    copy = LeRobotFolder(tmp_path / "copy")
    true = episode_of(1)[2][CAMERAS[1]]
    same = [np.array_equal(picture, true[at]) for at, picture in copy.pictures(copy.episodes[1], CAMERAS[1])]
    assert same == [False] * 2 + [True] * (FRAMES - 2)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_call_that_was_killed_is_finished_by_the_same_one(tmp_path: Path) -> None:
    """Killed with SIGKILL as soon as one file is noted as done; nothing is a dataset before the end."""
    source, out = write_dataset(tmp_path / "toy", "v2.1", episodes=5), tmp_path / "copy"
    options = ["--distort", "white_noise@3", "--distort", "max_darken@5", "--seed", "3", "--workers", "1"]
    command = [sys.executable, "-m", "merton", "distort", "dataset", str(source), str(out), *options]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: child.poll() is not None or any(out.glob(".distorting/*.npz")), 60)
    finally:
        child.send_signal(signal.SIGKILL)
    child.wait(10)
    assert child.returncode == -signal.SIGKILL, "it was done before it could be killed"
    assert not (out / "meta/info.json").exists()
    (out / ".1.2.unfinished").write_bytes(b"half")
    with pytest.raises(InputError, match="with other seed"):
        distort_dataset(source, out, Plan(PLAN.settings, seed=4), workers=1)
    made = distort_dataset(source, out, PLAN, workers=2)
    assert made.reused >= 1
    distort_dataset(source, tmp_path / "once", PLAN, workers=1)
    assert bytes_of(out) == bytes_of(tmp_path / "once"), "interruptions and workers change nothing"
    with pytest.raises(InputError, match="holds a dataset"):
        distort_dataset(source, out, PLAN)


def test_the_command_takes_a_design(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "toy", episodes=4, stored="image")
    design = tmp_path / "design.yaml"
    design.write_text(
        "name: aug\nseed: 3\ndistortions: [jpeg]\nlevels: [0, 4]\ndistort: {cameras: [hand], steps: [0, 1]}\n"
    )
    run = CliRunner()
    found = run.invoke(app, ["distort", "dataset", str(source), str(tmp_path / "copy"), "--design", str(design)])
    assert found.exit_code == 0, found.output
    about = json.loads((tmp_path / "copy/meta/merton.json").read_text())
    assert (about["cameras"], about["distortions"], about["seed"]) == ([CAMERAS[1]], ["jpeg@4"], 3)
    for words, text in (
        (["--design", str(design), "--seed", "1"], "leave --cameras and --seed out"),
        ([], "name either --distort"),
        (["--distort", "jpeg@4", "--cameras", "top"], "unknown camera of the data set 'top'"),
        (["--distort", "jpeg@9"], "level"),
    ):
        found = run.invoke(app, ["distort", "dataset", str(source), str(tmp_path / "other"), *words])
        assert isinstance(found.exception, InputError)
        assert text in str(found.exception)


def test_a_copy_beside_itself_is_refused(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "toy", episodes=1, stored="image")
    with pytest.raises(InputError, match="lie in each other"):
        distort_dataset(source, source / "copy", PLAN)


def of_images(tmp_path: Path, version: str = "v3.0") -> Path:
    return write_dataset(tmp_path / "toy", version, episodes=2, stored="image")


def test_a_camera_of_one_channel_stays_as_it_is(tmp_path: Path) -> None:
    toy = of_images(tmp_path)
    info = json.loads((toy / "meta/info.json").read_text())
    info["features"][CAMERAS[1]]["shape"][2] = 1
    (toy / "meta/info.json").write_text(json.dumps(info))
    distort_dataset(toy, tmp_path / "copy", Plan((DARK,), 0.0), workers=1)
    was, now = (parquet.read_table(one / "data/chunk-000/file-000.parquet") for one in (toy, tmp_path / "copy"))
    assert now.column(CAMERAS[1]) == was.column(CAMERAS[1])
    assert now.column(CAMERAS[0]) != was.column(CAMERAS[0])


@pytest.mark.parametrize(
    ("name", "line", "text"),
    [
        ("meta/episodes_stats.jsonl", '{"episode_index": 7, "stats": {}}', "line 3: is no statistics of one of the 2"),
        ("meta/episodes_stats.jsonl", '{"episode_index": 1}', "line 3: is no statistics of one of the 2"),
        ("meta/merton.json", "{torn", "cannot read .*merton.json"),
    ],
)
def test_a_fault_beside_the_pictures_is_a_sentence(tmp_path: Path, name: str, line: str, text: str) -> None:
    toy = of_images(tmp_path, "v2.1")
    with (toy / name).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=text):
        distort_dataset(toy, tmp_path / "copy", PLAN, workers=1)


def test_a_table_without_numbers_of_frames_is_a_sentence(tmp_path: Path) -> None:
    toy = of_images(tmp_path)
    file = toy / "data/chunk-000/file-000.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns(["frame_index"]), file)
    with pytest.raises(InputError, match="column 'frame_index' is missing"):
        distort_dataset(toy, tmp_path / "copy", PLAN, workers=1)
