"""Paths and names of LeRobot's format, of versions 2.0, 2.1 and 3.0.

Read from the sources of lerobot 0.3.3, 0.4.4 and 0.6.1 and their converter of 2.1 to 3.0:

    meta/info.json                     features, rate, counts, templates of the paths of data and videos
    meta/stats.json                    statistics of each feature; 2.1 has meta/episodes_stats.jsonl instead
    meta/tasks.jsonl, tasks.parquet    (2.x, 3.0) instructions and their numbers
    meta/episodes.jsonl                (2.x) a line an episode
    meta/episodes/*/*.parquet          (3.0) a row an episode, with its statistics and its place in data and videos
    data, videos                       (2.x) a file an episode; (3.0) files of many episodes
"""

from __future__ import annotations

from pathlib import Path

from merton.decision.models.convention_entry import INFO

NEWEST = "v3.0"
VERSIONS = ("v2.0", "v2.1", NEWEST)
A_FILE = 1000
"""Episodes (2.x) or files (3.0) in one folder, as LeRobot has it."""
INDICES = ("frame_index", "episode_index", "index", "task_index")
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
"""Templates of version 3.0."""
STATS = Path("meta", "stats.json")
TASKS, TASKS_2 = Path("meta", "tasks.parquet"), Path("meta", "tasks.jsonl")
EPISODES, EPISODES_2 = Path("meta", "episodes"), Path("meta", "episodes.jsonl")
EPISODES_STATS_2 = Path("meta", "episodes_stats.jsonl")

OBSERVATION = "observation."
IMAGES = "observation.images."
STATE = "observation.state"
ACTION = "action"


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds a dataset."""
    return (folder / INFO).is_file()


def place(number: int, ending: str) -> Path:
    """Path of the file of this number in version 3.0, below the folder of its kind."""
    return Path(f"chunk-{number // A_FILE:03d}", f"file-{number % A_FILE:03d}{ending}")
