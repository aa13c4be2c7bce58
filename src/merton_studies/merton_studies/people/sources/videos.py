"""Videos in folders: reference/TASK/VIDEO, and TEAM/TASK/VIDEO of each team (the world-model track)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError
from merton.progress import OnProgress
from merton.results.tables import name_in, read_rows
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Videos
from merton_studies.people.sources.prepared import in_parallel, is_video, video_prepared

REFERENCE = "reference"
TABLE = "videos.csv"
"""The table that `merton people videos` writes beside its films."""

Place = tuple[str, str, str]
"""Team, task and video."""


@dataclass(frozen=True)
class Film:
    """A row of `TABLE`.

    Attributes:
        scene: that it shows.
        trial: id of the trial that was filmed.
        score: of the defect that was planted, or "".
    """

    scene: str
    trial: str
    score: str


def films_in(folder: Path) -> dict[Place, Film]:
    """The films of a folder by their places; none without `TABLE`. Raises InputError if it is damaged."""
    if not (folder / TABLE).is_file():
        return {}
    found = {}
    for where, row in read_rows(folder / TABLE, _NAMES, ("score", "sha256")):
        team, task, video, scene, trial = (name_in(where, row, name) for name in _NAMES)
        found[team, task, video] = Film(scene, trial, str(row.get("score") or "").strip())
    return found


_NAMES = ("team", "task", "video", "scene", "trial")


def items_of(loaded: Loaded, settings: Videos, on_progress: OnProgress) -> list[Item]:
    """An item for each video of a team, beside the reference video of the same task and name.

    A video is a file, or a folder of pictures; its name without the ending is that of its reference. A team may lack
    some; the board then counts them as missing.

    Raises:
        InputError: no such folder, no folder `reference`, no team, a video without its reference, or two of one name.
    """
    folder = loaded.place(settings.folder)
    if not (folder / REFERENCE).is_dir():
        raise InputError(f"{folder} has no folder {REFERENCE!r}: videos are in reference/TASK/ and TEAM/TASK/")
    found = videos_in(folder)
    references = {place[1:]: path for place, path in found.items() if place[0] == REFERENCE}
    teams = [place for place in found if place[0] != REFERENCE]
    if not teams:
        raise InputError(f"{folder} has no team beside {REFERENCE!r}: videos of a team are in TEAM/TASK/")
    for place in teams:
        if place[1:] not in references:
            task, video = place[1:]
            raise InputError(f"{found[place]} has no reference: there is no {video!r} in reference/{task}")
    real = Counter(task for task, _ in references)
    used = sorted({found[place] for place in teams} | {references[task, video] for _, task, video in teams})
    prepared = dict(
        zip(used, in_parallel(lambda path: video_prepared(path, loaded.media), used, on_progress), strict=True)
    )
    films = films_in(folder)
    unknown = Film("", "", "")
    return [
        Item(
            f"{team}/{task}/{video}",
            films.get((team, task, video), unknown).scene or f"{task}/{video}",
            {
                "reference": prepared[references[task, video]]("reference"),
                "video": prepared[found[team, task, video]]("video"),
            },
            {"instruction": task.replace("_", " ")},
            {
                "team": team,
                "task": task,
                "video": video,
                "real_videos": str(real[task]),
                "planted": films.get((team, task, video), unknown).score,
            },
        )
        for team, task, video in teams
    ]


def videos_in(folder: Path) -> dict[Place, Path]:
    """All videos in TEAM/TASK/; raises InputError for two of one name."""
    found: dict[Place, Path] = {}
    for own in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        found |= _of_team(own)
    return found


def _of_team(folder: Path) -> dict[Place, Path]:
    found: dict[Place, Path] = {}
    for task in sorted(path for path in folder.iterdir() if path.is_dir()):
        for path in sorted(task.iterdir()):
            if path.name.startswith(".") or not is_video(path):
                continue
            place = (folder.name, task.name, path.name if path.is_dir() else path.stem)
            if place in found:
                raise InputError(f"{path} and {found[place].name} are two videos of one name")
            found[place] = path
    return found
