"""Datasets in LeRobot's format are read as they were written; a fault in one is a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lerobot_datasets import CAMERAS, FPS, FRAMES, HEIGHT, TASKS, WIDTH, episode_of, write_dataset, write_film
from merton.errors import InputError
from merton.perception.videos import open_video
from merton_studies.lerobot.folder import LeRobotFolder, dataset_sha256, files_in, json_lines

pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed (the extra dataset)")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dataset)")

FORMS = [("v3.0", "video"), ("v2.1", "video"), ("v3.0", "image"), ("v2.1", "image")]
LOSS = 12
"""The mean difference that a video may make to a picture of flat areas."""


@pytest.fixture(scope="module", params=FORMS, ids=" ".join)
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LeRobotFolder:
    version, stored = request.param
    return LeRobotFolder(write_dataset(tmp_path_factory.mktemp("data") / "toy", version, stored=stored))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "toy", episodes=3)


def test_features_and_episodes(dataset: LeRobotFolder) -> None:
    assert dataset.fps == FPS
    assert tuple(dataset.cameras) == CAMERAS
    assert [camera.name for camera in dataset.cameras.values()] == ["front", "hand"]
    assert {(camera.height_px, camera.width_px) for camera in dataset.cameras.values()} == {(HEIGHT, WIDTH)}
    assert [(one.index, one.length) for one in dataset.episodes] == [(number, FRAMES) for number in range(6)]
    assert [one.tasks for one in dataset.episodes] == [(TASKS[number % 2],) for number in range(6)]


def test_rows_and_pictures_are_those_of_the_episode(dataset: LeRobotFolder) -> None:
    for number in (0, 3, 5):
        episode = dataset.episodes[number]
        states, actions, pictures = episode_of(number)
        rows = dataset.rows(episode, ["observation.state", "action", "timestamp"])
        np.testing.assert_array_equal(rows["observation.state"], states)
        np.testing.assert_array_equal(rows["action"], actions)
        assert dataset.instructions(episode) == [TASKS[number % 2]] * FRAMES
        for key in CAMERAS:
            found = dict(dataset.pictures(episode, key, [0, 4, FRAMES - 1]))
            assert list(found) == [0, 4, FRAMES - 1]
            for frame, picture in found.items():
                apart = [np.abs(picture.astype(int) - other).mean() for other in pictures[key]]
                assert apart[frame] < LOSS
                assert apart[frame] == min(apart), "a neighbour's picture is nearer"
            assert len(list(dataset.pictures(episode, key))) == FRAMES


def test_a_video_is_read_from_a_time_on(toy: Path) -> None:
    folder = LeRobotFolder(toy)
    relative, from_s = folder.episodes[2].videos[CAMERAS[0]]
    with open_video(toy / relative, from_s=from_s) as video:
        first = next(video.frames)
        assert video.codec == "h264"
        assert 0 < from_s - first.time_s < 2 / FPS or first.time_s == pytest.approx(from_s)


def test_channels_may_be_declared_first(toy: Path) -> None:
    def first(info: dict[str, Any]) -> None:
        for key in CAMERAS:
            info["features"][key] |= {"shape": [3, HEIGHT, WIDTH], "names": ["channels", "height", "width"]}

    changed(toy, first)
    folder = LeRobotFolder(toy)
    assert (folder.cameras[CAMERAS[0]].height_px, folder.cameras[CAMERAS[0]].width_px) == (HEIGHT, WIDTH)
    ((_, picture),) = folder.pictures(folder.episodes[1], CAMERAS[0], [3])
    assert picture.shape == (HEIGHT, WIDTH, 3)


def test_depth_is_no_colour(toy: Path) -> None:
    changed(toy, lambda info: info["features"][CAMERAS[1]]["info"].update({"is_depth_map": True}))
    folder = LeRobotFolder(toy)
    assert (tuple(folder.cameras), folder.depth) == (CAMERAS[:1], CAMERAS[1:])


def test_pictures_without_three_channels_are_named_and_not_read(toy: Path) -> None:
    """One channel is grey or an unmarked depth, whose 16 bits would be cut to 8."""
    changed(toy, lambda info: info["features"][CAMERAS[1]].update({"shape": [HEIGHT, WIDTH, 1]}))
    folder = LeRobotFolder(toy)
    assert (tuple(folder.cameras), folder.depth, folder.other) == (CAMERAS[:1], (), CAMERAS[1:])


@pytest.mark.parametrize("what", ["files", "folder"])
def test_a_dataset_may_be_links_to_another_disk(toy: Path, tmp_path: Path, what: str) -> None:
    """As the hub's cache has it (links to blobs), or a lab with its videos elsewhere."""
    wanted = [picture for _, picture in LeRobotFolder(toy).pictures(LeRobotFolder(toy).episodes[1], CAMERAS[0], [0, 5])]
    names = [file.relative_to(toy) for file in files_in(toy)]
    moved = [toy / name for name in names] if what == "files" else [toy / "videos"]
    (tmp_path / "blobs").mkdir()
    for number, one in enumerate(moved):
        one.rename(tmp_path / "blobs" / str(number))
        one.symlink_to(tmp_path / "blobs" / str(number))
    folder = LeRobotFolder(toy)
    found = [picture for _, picture in folder.pictures(folder.episodes[1], CAMERAS[0], [0, 5])]
    assert all(np.array_equal(one, other) for one, other in zip(wanted, found, strict=True))
    assert [file.relative_to(toy) for file in files_in(toy)] == names


def test_a_dataset_without_instructions(toy: Path) -> None:
    (toy / "meta/tasks.parquet").unlink()
    folder = LeRobotFolder(toy)
    assert folder.tasks == {}
    assert folder.instructions(folder.episodes[0]) == [TASKS[0]] * FRAMES, "the table of episodes has it"


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_a_task_that_the_table_does_not_have_is_a_sentence(tmp_path: Path, version: str) -> None:
    toy = write_dataset(tmp_path / "toy", version, episodes=2)
    if version == "v3.0":
        file = toy / "meta/tasks.parquet"
        parquet.write_table(parquet.read_table(file).slice(0, 1), file)
    else:
        file = toy / "meta/tasks.jsonl"
        file.write_text(file.read_text().partition("\n")[0] + "\n")
    folder = LeRobotFolder(toy)
    assert folder.instructions(folder.episodes[0]) == [TASKS[0]] * FRAMES
    with pytest.raises(InputError, match=rf"frame 0 of episode 1 has task 1, which meta/{file.name} does not have"):
        folder.instructions(folder.episodes[1])


def test_a_row_of_the_tasks_without_number_or_text_is_a_sentence(tmp_path: Path) -> None:
    toy = write_dataset(tmp_path / "toy", "v2.1", episodes=1)
    for line, text in (
        ('{"task": "reach"}', "no task_index or no task"),
        ('{"task_index": 0, "task": null}', "no text"),
    ):
        (toy / "meta/tasks.jsonl").write_text(f"{line}\n")
        with pytest.raises(InputError, match=text):
            _ = LeRobotFolder(toy).tasks


def test_the_hash_is_of_the_content_and_not_of_the_place(toy: Path, tmp_path: Path) -> None:
    shutil.copytree(toy, tmp_path / "copy")
    assert dataset_sha256(tmp_path / "copy") == dataset_sha256(toy)
    changed(toy, lambda info: info.update({"fps": 21}))
    assert dataset_sha256(tmp_path / "copy") != dataset_sha256(toy)


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    info = json.loads((folder / "meta/info.json").read_text())
    change(info)
    (folder / "meta/info.json").write_text(json.dumps(info))


def torn(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def other_rate(folder: Path) -> None:
    pictures = (image for number in range(3) for image in episode_of(number)[2][CAMERAS[0]])
    write_film(folder / f"videos/{CAMERAS[0]}/chunk-000/file-000.mp4", pictures, hz=25)


def in_table(name: str, change: Callable[[Any], Any], place: str = "data") -> Callable[[Path], None]:
    """Damage to a column of a table: its values are changed as a list."""

    def damage(folder: Path) -> None:
        (file,) = (folder / place).rglob("*.parquet")
        table = parquet.read_table(file, partitioning=None)
        made = arrow.array(change(table.column(name).to_pylist()))
        parquet.write_table(table.set_column(table.schema.get_field_index(name), name, made), file)

    return damage


def short_video(folder: Path) -> None:
    write_film(folder / f"videos/{CAMERAS[0]}/chunk-000/file-000.mp4", episode_of(0)[2][CAMERAS[0]])


VIDEO = f"videos/{CAMERAS[0]}/chunk-000/file-000.mp4"
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no dataset": (lambda one: shutil.rmtree(one / "meta"), "is no dataset of LeRobot"),
    "another version": (
        lambda one: changed(one, lambda info: info.update({"codebase_version": "v1.6"})),
        "version v1.6",
    ),
    "no rate": (lambda one: changed(one, lambda info: info.update({"fps": 0})), "fps must be a number > 0, got 0"),
    "a torn info": (lambda one: torn(one / "meta/info.json"), "cannot read .*info.json"),
    "a video is missing": (
        lambda one: (one / VIDEO).unlink(),
        "the video of 'observation.images.front' of episode 2 is",
    ),
    "a torn video": (lambda one: torn(one / VIDEO), "no intact video|has no picture|cut off"),
    "a video of another rate": (other_rate, r"has no picture of 'observation.images.front' at 1\.2"),
    "a short video": (short_video, "has no picture of|no intact video|cut off"),
    "a torn table": (lambda one: torn(one / "data/chunk-000/file-000.parquet"), "is no Parquet table"),
    "torn episodes": (lambda one: torn(one / "meta/episodes/chunk-000/file-000.parquet"), "is no Parquet table"),
    "no episodes": (lambda one: shutil.rmtree(one / "meta/episodes"), "has no table of episodes"),
    "a rate of true": (lambda one: changed(one, lambda info: info.update({"fps": True})), "fps must be a number > 0"),
    "frames in disorder": (
        in_table("frame_index", lambda values: values[::-1]),
        "not its frames 0 to 11 in this order, by 'frame_index'",
    ),
    "an index of lists": (
        in_table("episode_index", lambda values: [[value] for value in values]),
        "must be of whole numbers, got list",
    ),
    "an empty action": (
        in_table("action", lambda values: [*values[:-1], None]),
        "rows of other lengths, or empty ones",
    ),
    "a number is missing": (
        in_table("episode_index", lambda values: [0, 2, 3], "meta/episodes"),
        "each once: 2 stands where 1 is expected",
    ),
    "no number": (in_table("episode_index", lambda values: [0, 1, None], "meta/episodes"), "row of an episode, or a"),
    "an absolute path": (
        lambda one: changed(one, lambda info: info.update({"data_path": "/etc/{chunk_index}.parquet"})),
        "names a file outside of itself",
    ),
    "a path out of it": (
        lambda one: changed(one, lambda info: info.update({"data_path": "../../{chunk_index}.parquet"})),
        "names a file outside of itself",
    ),
    "a template of no place": (
        lambda one: changed(one, lambda info: info.update({"video_path": "videos/{nowhere}.mp4"})),
        "a path of meta/info.json, cannot be used: 'nowhere'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_a_sentence(toy: Path, fault: str) -> None:
    damage, text = FAULTS[fault]
    damage(toy)

    def read() -> None:
        folder = LeRobotFolder(toy)
        episode = folder.episodes[2]
        folder.rows(episode, ["action"])
        list(folder.pictures(episode, CAMERAS[0]))

    with pytest.raises(InputError, match=text) as told:
        read()
    assert "\n" not in str(told.value)


def test_a_table_with_other_counts_is_refused(toy: Path) -> None:
    file = toy / "data/chunk-000/file-000.parquet"
    parquet.write_table(parquet.read_table(file).slice(0, 2 * FRAMES + 3), file)
    folder = LeRobotFolder(toy)
    with pytest.raises(InputError, match="has 3 frames of episode 2, which has 12"):
        folder.rows(folder.episodes[2], ["action"])


def test_a_line_ends_at_its_newline_alone(tmp_path: Path) -> None:
    """Other programs write JSON with U+2028 or U+0085 in its texts as they are, which Python takes for ends, too."""
    file, tasks = tmp_path / "tasks.jsonl", ["pick\u2028the cup", "put it\x85down"]
    rows = [{"task_index": index, "task": task} for index, task in enumerate(tasks)]
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    assert json_lines(file) == rows
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert json_lines(file) == rows


def test_a_torn_line_of_version_2_is_named(tmp_path: Path) -> None:
    toy = write_dataset(tmp_path / "toy", "v2.1", episodes=2)
    with (toy / "meta/episodes.jsonl").open("a") as file:
        file.write('{"episode_index": 2, "tas')
    with pytest.raises(InputError, match=r"episodes.jsonl, line 3: is no JSON object"):
        _ = LeRobotFolder(toy).episodes
