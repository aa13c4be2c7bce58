"""Small datasets in LeRobot's format, written by hand: a red square goes to a green one.

The form of version 3.0 is that of `LeRobotDataset.create` of lerobot 0.6.1 (one video of many episodes a camera), that
of 2.1 what its converter `convert_dataset_v21_to_v30.py` reads; both were held against those programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from merton.perception.images import encode_image

FPS = 20
HEIGHT, WIDTH = 64, 96
FRAMES = 12
TASKS = ("reach the green square", "go to the green square")
CAMERAS = ("observation.images.front", "observation.images.hand")
STEP = 0.05


class ToGreen:
    """A policy: the steps from the red square to the green one that it sees; it stays where it sees none."""

    rows = 4

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(rows, 2) steps."""
        image = observation[CAMERAS[0]].astype(int)
        green = image[..., 1] - image[..., 0] > 80
        if green.sum() < 4:
            return np.zeros((self.rows, 2))
        rows, columns = np.nonzero(green)
        goal = np.array([columns.mean() / WIDTH, rows.mean() / HEIGHT])
        at, found = np.asarray(observation["observation.state"], float), []
        for _ in range(self.rows):
            found.append(np.clip(goal - at, -STEP, STEP))
            at = at + found[-1]
        return np.array(found)


def episode_of(number: int) -> tuple[np.ndarray, np.ndarray, dict[str, list[np.ndarray]]]:
    """States (frames, 2) and actions (frames, 2) in widths of the picture, and the pictures of each camera."""
    rng = np.random.default_rng(number)
    at, goal = rng.uniform(0.2, 0.8, 2), rng.uniform(0.2, 0.8, 2)
    states, actions, pictures = [], [], {key: list[np.ndarray]() for key in CAMERAS}
    for _ in range(FRAMES):
        image = np.full((HEIGHT, WIDTH, 3), (90, 80, 70), np.uint8)
        for (x, y), color, half in ((goal, (20, 220, 40), 6), (at, (230, 30, 30), 4)):
            column, row = round(x * WIDTH), round(y * HEIGHT)
            image[row - half : row + half, column - half : column + half] = color
        step = np.clip(goal - at, -STEP, STEP)
        states.append(at)
        actions.append(step)
        pictures[CAMERAS[0]].append(image)
        pictures[CAMERAS[1]].append(np.ascontiguousarray(image[::-1]))
        at = at + step
    return np.array(states, np.float32), np.array(actions, np.float32), pictures


def write_dataset(
    folder: Path, version: str = "v3.0", episodes: int = 6, *, stored: str = "video", codec: str = "libx264"
) -> Path:
    """Write a dataset of `episodes` episodes of `FRAMES` frames; returns the folder."""
    arrow = __import__("pyarrow")
    newest = version == "v3.0"
    made = [episode_of(number) for number in range(episodes)]
    tables = [_table(arrow, number, *one, stored) for number, one in enumerate(made)]
    info = {
        "codebase_version": version, "robot_type": "toy", "total_episodes": episodes,
        "total_frames": episodes * FRAMES, "total_tasks": len(TASKS), "chunks_size": 1000, "fps": FPS,
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet" if newest
        else "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": ("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4" if newest
        else "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4") if stored == "video"
        else None,
        "features": _features(stored),
    }  # fmt: skip
    (folder / "meta").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\ntags:\n- LeRobot\n---\n\n# Toy\n")
    (_write_3 if newest else _write_2)(arrow, folder, made, tables, stored, codec)
    if not newest:
        info |= {"total_chunks": 1, "total_videos": episodes * len(CAMERAS)}
    (folder / "meta/info.json").write_text(json.dumps(info))
    return folder


def _features(stored: str) -> dict[str, Any]:
    video = {"video.height": HEIGHT, "video.width": WIDTH, "video.codec": "h264", "video.pix_fmt": "yuv420p",
             "video.fps": FPS, "video.channels": 3, "is_depth_map": False, "has_audio": False}  # fmt: skip
    picture: dict[str, Any] = {"dtype": stored, "shape": [HEIGHT, WIDTH, 3], "names": ["height", "width", "channels"]}
    vector = {"dtype": "float32", "shape": [2], "names": ["x", "y"]}
    numbers = ("frame_index", "episode_index", "index", "task_index")
    return {
        **{key: picture | ({"info": video} if stored == "video" else {}) for key in CAMERAS},
        "observation.state": vector,
        "action": vector,
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **{key: {"dtype": "int64", "shape": [1], "names": None} for key in numbers},
    }


def _table(arrow: Any, number: int, states: Any, actions: Any, pictures: Any, stored: str) -> Any:
    count = np.arange(FRAMES)
    rows = {
        "observation.state": arrow.FixedSizeListArray.from_arrays(states.ravel(), 2),
        "action": arrow.FixedSizeListArray.from_arrays(actions.ravel(), 2),
        "timestamp": (count / FPS).astype(np.float32),
        "frame_index": count,
        "episode_index": np.full(FRAMES, number),
        "index": count + number * FRAMES,
        "task_index": np.full(FRAMES, number % len(TASKS)),
    }
    if stored == "image":
        kind = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
        for key in CAMERAS:
            cells = [
                {"bytes": encode_image(image), "path": f"frame-{at:06d}.png"} for at, image in enumerate(pictures[key])
            ]
            rows[key] = arrow.array(cells, type=kind)
    return arrow.table(rows)


def _statistics(values: np.ndarray) -> dict[str, Any]:
    rows = values.reshape(len(values), -1).astype(float)
    return {"min": rows.min(0).tolist(), "max": rows.max(0).tolist(), "mean": rows.mean(0).tolist(),
            "std": rows.std(0).tolist(), "count": [len(rows)]}  # fmt: skip


def _of_pictures(images: Iterable[np.ndarray]) -> dict[str, Any]:
    pixels = np.stack(list(images)) / 255.0
    found = {"min": pixels.min((0, 1, 2)), "max": pixels.max((0, 1, 2)), "mean": pixels.mean((0, 1, 2)),
             "std": pixels.std((0, 1, 2))}  # fmt: skip
    return {name: values.reshape(3, 1, 1).tolist() for name, values in found.items()} | {"count": [len(pixels)]}


def _of_episode(one: tuple[Any, Any, Any]) -> dict[str, Any]:
    states, actions, pictures = one
    vectors = {"observation.state": _statistics(states), "action": _statistics(actions)}
    return vectors | {key: _of_pictures(images) for key, images in pictures.items()}


def _write_3(arrow: Any, folder: Path, made: Any, tables: Any, stored: str, codec: str) -> None:
    parquet = __import__("pyarrow.parquet").parquet
    for part in ("data/chunk-000", "meta/episodes/chunk-000"):
        (folder / part).mkdir(parents=True)
    parquet.write_table(arrow.concat_tables(tables), folder / "data/chunk-000/file-000.parquet")
    rows = []
    for number, one in enumerate(made):
        row: dict[str, Any] = {
            "episode_index": number, "tasks": [TASKS[number % len(TASKS)]], "length": FRAMES,
            "dataset_from_index": number * FRAMES, "dataset_to_index": (number + 1) * FRAMES,
            "data/chunk_index": 0, "data/file_index": 0, "meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0,
        }  # fmt: skip
        for key in CAMERAS if stored == "video" else ():
            row |= {f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": 0,
                    f"videos/{key}/from_timestamp": number * FRAMES / FPS,
                    f"videos/{key}/to_timestamp": (number + 1) * FRAMES / FPS}  # fmt: skip
        for key, found in _of_episode(one).items():
            row |= {f"stats/{key}/{name}": values for name, values in found.items()}
        rows.append(row)
    parquet.write_table(arrow.Table.from_pylist(rows), folder / "meta/episodes/chunk-000/file-000.parquet")
    note = {
        "index_columns": ["task"], "column_indexes": [], "pandas_version": "2.2.3",
        "columns": [{"name": name, "field_name": name, "pandas_type": kind, "numpy_type": kind, "metadata": None}
                    for name, kind in (("task_index", "int64"), ("task", "object"))],
    }  # fmt: skip
    tasks = arrow.table({"task_index": list(range(len(TASKS))), "task": list(TASKS)})
    parquet.write_table(tasks.replace_schema_metadata({"pandas": json.dumps(note)}), folder / "meta/tasks.parquet")
    whole = {key: np.concatenate([one[at] for one in made]) for at, key in ((0, "observation.state"), (1, "action"))}
    stats = {key: _statistics(values) | {"q01": np.quantile(values, 0.01, axis=0).tolist(),
                                         "q99": np.quantile(values, 0.99, axis=0).tolist()}
             for key, values in whole.items()}  # fmt: skip
    stats |= {key: _of_pictures(image for one in made for image in one[2][key]) for key in CAMERAS}
    (folder / "meta/stats.json").write_text(json.dumps(stats))
    for key in CAMERAS if stored == "video" else ():
        file = folder / "videos" / key / "chunk-000/file-000.mp4"
        write_film(file, (image for one in made for image in one[2][key]), codec)


def _write_2(arrow: Any, folder: Path, made: Any, tables: Any, stored: str, codec: str) -> None:
    parquet = __import__("pyarrow.parquet").parquet
    (folder / "data/chunk-000").mkdir(parents=True)
    lines = []
    for number, (one, table) in enumerate(zip(made, tables, strict=True)):
        parquet.write_table(table, folder / f"data/chunk-000/episode_{number:06d}.parquet")
        lines.append({"episode_index": number, "tasks": [TASKS[number % len(TASKS)]], "length": FRAMES})
        for key in CAMERAS if stored == "video" else ():
            write_film(folder / f"videos/chunk-000/{key}/episode_{number:06d}.mp4", one[2][key], codec)
    stats = [{"episode_index": number, "stats": _of_episode(one)} for number, one in enumerate(made)]
    tasks = [{"task_index": number, "task": task} for number, task in enumerate(TASKS)]
    for name, rows in (("episodes", lines), ("episodes_stats", stats), ("tasks", tasks)):
        (folder / f"meta/{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def write_film(file: Path, images: Iterable[np.ndarray], codec: str = "libx264", hz: int = FPS) -> None:
    """Write pictures as LeRobot's recorder does: every second one a key frame."""
    av = __import__("av")
    file.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(file), "w") as made:
        stream = made.add_stream(codec, rate=hz)
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        stream.time_base = Fraction(1, hz)
        stream.options = {"g": "2", "crf": "10"}
        for image in images:
            made.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        made.mux(stream.encode())


def frames_of(file: Path) -> Iterator[tuple[float, np.ndarray]]:
    """Time [s] and pixels of each picture of a video, by PyAV alone."""
    with __import__("av").open(str(file)) as opened:
        for frame in opened.decode(video=0):
            yield frame.time, frame.to_ndarray(format="rgb24")
