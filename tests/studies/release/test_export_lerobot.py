"""Demonstrations for LeRobot: what its loader demands, and that frames are what the record says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_process import in_this_process

from merton.errors import InputError
from merton.execution.kinematics import base_from_tcp
from merton.experiment.local import LocalPorts
from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.experiment.trial import TrialRun
from merton.perception.images import read_image
from merton.simulation.delay import Instant
from merton.world.cell import load_cell
from merton_studies.lerobot.statistics import of_shades, of_values
from merton_studies.release.lerobot import demonstration, from_run
from merton_studies.release.lerobot.dataset import put_together
from merton_studies.release.lerobot.from_run import export
from merton_studies.release.lerobot.pictures import ALL_PICTURES, PictureChoice
from runs import records, undisturbed_run

av = pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dataset)")

EXPERIMENT = """
name: shown
agents: [{id: oracle, vla: oracle}, {id: hold, vla: hold}]
tasks: [pick]
distortions: [jpeg]
levels: [0, 5]
scenes: 1
max_steps: 2
"""
FPS = 1
TRIALS = ("oracle.pick.0.jpeg.5", "oracle.pick.0.reference.0")


@pytest.fixture(scope="module")
def run(renders: None, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return undisturbed_run(tmp_path_factory.mktemp("shown"), EXPERIMENT)


@pytest.fixture(scope="module")
def dataset(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exported by two calls, of which the first is interrupted before the second trial."""
    out, work = tmp_path_factory.mktemp("lerobot") / "out", from_run._demonstrate

    def interrupted(path: Path, folder: Path, record: Any, fps: int, choice: PictureChoice) -> str:
        if record.id == TRIALS[1]:
            raise KeyboardInterrupt
        return work(path, folder, record, fps, choice)

    with pytest.MonkeyPatch.context() as monkeypatch:
        in_this_process(monkeypatch, from_run)
        monkeypatch.setattr(from_run, "_demonstrate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            export(run.path, out, FPS, successful=True)
        assert not (out / "meta").exists()
        (kept,) = out.rglob("top.mp4")
        before = kept.stat().st_mtime_ns
        with pytest.raises(InputError, match="an unfinished dataset with other fps"):
            export(run.path, out, FPS + 1, successful=True)

        def going_on(path: Path, folder: Path, record: Any, fps: int, choice: PictureChoice) -> str:
            assert kept.stat().st_mtime_ns == before, "a trial is carried out anew that was there already"
            return work(path, folder, record, fps, choice)

        monkeypatch.setattr(from_run, "_demonstrate", going_on)
        assert export(run.path, out, FPS, successful=True).left_out == ()
    assert [file.name for file in out.iterdir() if file.name.startswith(".")] == []
    return out


def told(out: Path, name: str) -> Any:
    return json.loads((out / name).read_bytes())


def episodes(out: Path) -> list[dict[str, Any]]:
    return list(parquet.read_table(out / "meta/episodes/chunk-000/file-000.parquet").to_pylist())


def frames(out: Path) -> dict[str, np.ndarray]:
    table = parquet.read_table(out / "data/chunk-000/file-000.parquet")
    return {name: np.array(table.column(name).to_pylist()) for name in table.column_names}


def pictures(out: Path, episode: int, camera: str) -> tuple[list[np.ndarray], list[float]]:
    with av.open(str(out / f"videos/observation.images.{camera}/chunk-000/file-{episode:03d}.mp4")) as opened:
        decoded = list(opened.decode(video=0))
    return [frame.to_ndarray(format="rgb24") for frame in decoded], [frame.time for frame in decoded]


@pytest.mark.usefixtures("renders")
def test_the_folder_is_what_the_loader_demands(dataset: Path) -> None:
    """The fields, columns and types that lerobot 0.4.4 and 0.6.1 read (dataset_metadata.py, dataset_reader.py,
    io_utils.py and feature_utils.py of the latter; both have codebase version v3.0)."""
    info = told(dataset, "meta/info.json")
    assert info["codebase_version"] == "v3.0"
    assert {key: info[key] for key in ("fps", "total_episodes", "total_tasks", "splits", "robot_type")} == {
        "fps": FPS, "total_episodes": 2, "total_tasks": 1, "splits": {"train": "0:2"}, "robot_type": "ur5",
    }  # fmt: skip
    assert info["data_path"].format(chunk_index=0, file_index=7) == "data/chunk-000/file-007.parquet"
    assert info["video_path"].format(video_key="a", chunk_index=1, file_index=0) == "videos/a/chunk-001/file-000.mp4"
    features = info["features"]
    assert not [name for name in features if "/" in name]
    # the five columns that every dataset has, with LeRobot's types (utils/constants.py, DEFAULT_FEATURES)
    assert {name: features[name]["dtype"] for name in
            ("timestamp", "frame_index", "episode_index", "index", "task_index")} == {
        "timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64",
        "task_index": "int64",
    }  # fmt: skip
    data = parquet.read_table(dataset / "data/chunk-000/file-000.parquet")
    stored = {name: feature for name, feature in features.items() if feature["dtype"] != "video"}
    assert set(data.column_names) == set(stored), "the loader casts the table to the features without the videos"
    types = {"float32": "float", "int64": "int64", "bool": "bool"}
    for name, feature in stored.items():
        kind, inner = data.schema.field(name).type, types[feature["dtype"]]
        length = feature["shape"][0]
        assert str(kind) == (inner if length == 1 else f"fixed_size_list<element: {inner}>[{length}]"), name
        assert feature["names"] is None or len(feature["names"]) == length
    assert data.num_rows == info["total_frames"]
    tasks = parquet.read_table(dataset / "meta/tasks.parquet")
    note = json.loads(tasks.schema.metadata[b"pandas"])
    assert note["index_columns"] == ["task"], "the instructions must be the index that pandas reads"
    assert tasks.to_pylist() == [{"task_index": 0, "task": episodes(dataset)[0]["tasks"][0]}]


def test_episodes_are_where_their_rows_say(dataset: Path) -> None:
    info, columns, start = told(dataset, "meta/info.json"), frames(dataset), 0
    assert [row["trial"] for row in episodes(dataset)] == list(TRIALS)
    for number, row in enumerate(episodes(dataset)):
        rows = slice(row["dataset_from_index"], row["dataset_to_index"])
        assert (rows.start, rows.stop - rows.start) == (start, row["length"])
        assert set(columns["episode_index"][rows]) == {row["episode_index"]} == {number}
        count = np.arange(row["length"])
        np.testing.assert_array_equal(columns["frame_index"][rows], count)
        np.testing.assert_array_equal(columns["index"][rows], start + count)
        np.testing.assert_array_equal(columns["timestamp"][rows], (count / FPS).astype(np.float32))
        np.testing.assert_array_equal(columns["next.done"][rows], count == count[-1])
        np.testing.assert_array_equal(columns["next.success"][rows], (count == count[-1]) & row["success"])
        for camera in ("wrist", "top", "side"):
            key = f"observation.images.{camera}"
            images, times = pictures(dataset, number, camera)
            assert (row[f"videos/{key}/chunk_index"], row[f"videos/{key}/file_index"]) == (0, number)
            # the loader takes the picture at from_timestamp + timestamp, which must be within 1e-4 s of one
            np.testing.assert_allclose(
                row[f"videos/{key}/from_timestamp"] + columns["timestamp"][rows], times, atol=1e-4
            )
            assert list(images[0].shape) == info["features"][key]["shape"]
            assert info["features"][key]["info"]["video.codec"] in ("h264", "mpeg4", "mjpeg")
        start += row["length"]
    assert start == info["total_frames"]


def test_states_and_actions_are_the_recorded_motion(dataset: Path, run: RunDirectory) -> None:
    columns = frames(dataset)
    for number, trial in enumerate(TRIALS):
        detail = told(run.path, f"trials/{trial}/trial.json")
        rows = columns["episode_index"] == number
        state, action, tool = (columns[name][rows] for name in ("observation.state", "action", "tcp_pose"))
        np.testing.assert_allclose(state[0, :6], load_cell().home_joints, atol=2e-3)
        np.testing.assert_allclose(tool[0, :3], detail["path"][0], atol=1e-4)
        np.testing.assert_allclose(tool[-1, :3], detail["path"][-1], atol=1e-4)
        path = np.array(detail["path"])
        assert max(np.linalg.norm(path - place, axis=1).min() for place in tool[:, :3]) < 2e-5, "not on the path"
        for joints, pose in zip(state[:, :6], tool, strict=True):
            np.testing.assert_allclose(base_from_tcp(joints, load_cell())[:3, 3], pose[:3], atol=1e-5)
        assert (np.sum(tool[1:, 3:] * tool[:-1, 3:], axis=1) > 0).all(), "a quaternion jumps"
        np.testing.assert_array_equal(action[:-1, :6], state[1:, :6])
        assert (action[0, 6], action[-1, 6]) == (np.float32(0.14), 0.0)
        assert state[-1, 6] > 0.01, "the thing keeps the fingers apart, and the action goes on closing them"


def test_pictures_are_what_the_policy_saw(dataset: Path, run: RunDirectory) -> None:
    for number, trial in enumerate(TRIALS):
        (shown,) = {frame["camera"] for frame in told(run.path, f"trials/{trial}/trial.json")["frames"]}
        seen = read_image(run.path / "trials" / trial / f"00_{shown}_distorted.jpg").astype(int)
        other = read_image(run.path / "trials" / TRIALS[1 - number] / f"00_{shown}_distorted.jpg").astype(int)
        images, _ = pictures(dataset, number, shown)
        assert np.abs(images[0] - seen).mean() < 4 < np.abs(images[0] - other).mean()
        assert np.abs(images[0].astype(int) - images[-1]).max() > 80, "the arm moves"


def test_statistics_are_those_of_all_frames(dataset: Path) -> None:
    found, columns = told(dataset, "meta/stats.json"), frames(dataset)
    assert set(found) == set(told(dataset, "meta/info.json")["features"])
    np.testing.assert_allclose(found["action"]["mean"], columns["action"].mean(axis=0), rtol=1e-6)
    assert found["action"]["count"] == [len(columns["action"])]
    shown = np.concatenate([pictures(dataset, number, "top")[0] for number in range(2)])
    top = found["observation.images.top"]
    assert np.shape(top["mean"]) == np.shape(top["q99"]) == (3, 1, 1), "LeRobot's shape of channels"
    np.testing.assert_allclose(np.ravel(top["mean"]), shown.mean(axis=(0, 1, 2)) / 255, atol=0.01)


def test_statistics_of_known_numbers() -> None:
    assert of_values(np.array([[1.0, 5.0], [3.0, 5.0]])) | {"q01": 0, "q10": 0, "q90": 0, "q99": 0} == {
        "min": [1.0, 5.0], "max": [3.0, 5.0], "mean": [2.0, 5.0], "std": [1.0, 0.0], "count": [2], "q50": [2.0, 5.0],
        "q01": 0, "q10": 0, "q90": 0, "q99": 0,
    }  # fmt: skip
    shades = np.zeros((3, 256), int)
    shades[:, 0], shades[:, 255] = 3, 1
    found = of_shades(shades, 2)
    assert [found[name][0][0][0] for name in ("min", "max", "mean", "q50", "q90")] == [0, 1, 0.25, 0, 1]
    assert found["std"][2][0][0] == pytest.approx(np.std([0, 0, 0, 1]))


@pytest.mark.usefixtures("renders")
def test_a_film_has_the_chosen_camera_and_width(run: RunDirectory, tmp_path: Path) -> None:
    """Each of its pictures is the mean over those of the full width, but for what the film's codec loses."""
    (record,) = [record for record in records(run) if record.id == TRIALS[1]]
    full, small = tmp_path / "full", tmp_path / "small"
    assert from_run._demonstrate(run.path, full, record, FPS, ALL_PICTURES) == ""
    assert from_run._demonstrate(run.path, small, record, FPS, PictureChoice(("top",), 212)) == ""
    assert [file.name for file in small.glob("*.mp4")] == ["top.mp4"]
    shown = [next(iter(av.open(str(folder / "top.mp4")).decode(video=0))).to_ndarray(format="rgb24")
             for folder in (full, small)]  # fmt: skip
    assert [image.shape for image in shown] == [(240, 424, 3), (120, 212, 3)]
    means = shown[0].reshape(120, 2, 212, 2, 3).mean(axis=(1, 3))
    assert np.abs(means - shown[1]).mean() < 3.0
    with pytest.raises(InputError, match=r"there is no camera 'front'; choose of wrist, top, side"):
        export(run.path, tmp_path / "out", FPS, successful=True, choice=PictureChoice(("front",)))
    assert not (tmp_path / "out").exists()


def test_the_same_trial_gives_the_same_bytes(dataset: Path, run: RunDirectory, tmp_path: Path) -> None:
    (record,) = [record for record in records(run) if record.id == TRIALS[0]]
    assert from_run._demonstrate(run.path, tmp_path, record, FPS, ALL_PICTURES) == ""
    for camera in ("wrist", "top", "side"):
        film = dataset / f"videos/observation.images.{camera}/chunk-000/file-000.mp4"
        assert film.read_bytes() == demonstration.video(tmp_path, camera).read_bytes()
    again, columns = demonstration.kept(tmp_path, ["top"]), frames(dataset)
    for name, values in again.vectors.items():
        np.testing.assert_array_equal(values, columns[name][columns["episode_index"] == 0])


def test_trials_that_cannot_be_shown_are_left_out(
    dataset: Path, run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(monkeypatch, from_run)
    with pytest.raises(InputError, match="holds a dataset"):
        export(run.path, dataset, FPS, successful=True)
    monkeypatch.setattr(from_run, "carried_out_again", stopped_at_once)
    with pytest.raises(InputError, match=r"oracle\.pick\.0\.jpeg\.5 goes another way"):
        export(run.path, tmp_path / "out", FPS, successful=True)
    assert not (tmp_path / "out").exists(), "there is nothing to go on with"
    monkeypatch.setattr(from_run, "is_as_recorded", lambda path, record, way: True)
    with pytest.raises(InputError, match=r"hold\.pick\.0\.jpeg\.5: the arm does not move in it"):
        export(run.path, tmp_path / "out", FPS, successful=False)
    with pytest.raises(InputError, match="choose 1 to 50"):
        export(run.path, tmp_path / "out", 51, successful=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a.txt").write_text("mine")
    with pytest.raises(InputError, match="neither empty nor an unfinished dataset"):
        export(run.path, tmp_path / "mine", FPS, successful=True)


def stopped_at_once(ports: LocalPorts, spec: Any, trial: Trial, at_slice: Callable[[int], None]) -> TrialRun:
    """The trial before its first step."""
    begun = TrialRun(ports, spec, trial)
    at_slice(0)
    return begun


def test_a_frame_shows_the_nearest_slice() -> None:
    def at(time_ms: int) -> Instant:
        return Instant(time_ms * 1_000_000, np.zeros(1), np.zeros(6), np.zeros(6), 0.1)

    # slices of 20 ms, but for the short one with which a chunk ends
    slices = [(at(100 + time_ms), float(number)) for number, time_ms in enumerate((0, 20, 40, 54, 74, 94, 114, 134))]
    assert [number for _, number in from_run.evenly(slices, 10)] == [0.0, 5.0, 7.0], "0, 100 and, at rest, 200 ms"
    assert [number for _, number in from_run.evenly(slices[:1], 10)] == [0.0]


def test_many_episodes_are_spread_over_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("release.lerobot.dataset", "lerobot.layout"):
        monkeypatch.setattr(f"merton_studies.{module}.A_FILE", 2)
    parts = []
    for number in range(5):
        joints, opening = np.full((3, 6), number / 10), np.full(3, 0.1)
        vectors = demonstration.vectors_of(joints, opening, opening, load_cell())
        images = [np.full((16, 16, 3), 20 * number, np.uint8)] * 3
        demonstration.keep(tmp_path / f"{number}", f"do {number % 2}", vectors, {"top": images}, 5)
        parts.append((tmp_path / f"{number}", {"success": number > 2, "note": None if number < 4 else "last"}))
    provenance = {"source": "made", "merton": "0", "robot": "UR10e", "pictures": "grey", "limits": "None."}
    means = demonstration.convention_of_export(load_cell(), "UR10e", 5, "made")
    counts = put_together(tmp_path / "out", parts, means, provenance)
    put_together(tmp_path / "again", parts, means, provenance)
    assert json.loads((tmp_path / "out" / "meta" / "info.json").read_text())["robot_type"] == "ur10e"
    for file in (file for file in (tmp_path / "out").rglob("*") if file.is_file()):
        assert file.read_bytes() == (tmp_path / "again" / file.relative_to(tmp_path / "out")).read_bytes(), file
    assert (counts.episodes, counts.successes, counts.frames) == (5, 2, 15)
    files = sorted((tmp_path / "out/meta/episodes").rglob("*.parquet"))
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    assert [str(file.relative_to(tmp_path / "out/meta/episodes")) for file in files] == [
        "chunk-000/file-000.parquet", "chunk-000/file-001.parquet", "chunk-001/file-000.parquet",
    ]  # fmt: skip
    paths = told(tmp_path / "out", "meta/info.json")
    for number, row in enumerate(rows):
        data = paths["data_path"].format(chunk_index=row["data/chunk_index"], file_index=row["data/file_index"])
        table = parquet.read_table(tmp_path / "out" / data, filters=[("episode_index", "=", number)])
        assert table.column("index").to_pylist() == [3 * number, 3 * number + 1, 3 * number + 2]
        assert set(table.column("task_index").to_pylist()) == {number % 2}
        key = "observation.images.top"
        film = paths["video_path"].format(
            video_key=key, chunk_index=row[f"videos/{key}/chunk_index"], file_index=row[f"videos/{key}/file_index"]
        )
        with av.open(str(tmp_path / "out" / film)) as opened:
            grey = next(opened.decode(video=0)).to_ndarray(format="rgb24")
        assert abs(int(grey.mean()) - 20 * number) <= 2
    assert [row["note"] for row in rows] == [None] * 4 + ["last"]
