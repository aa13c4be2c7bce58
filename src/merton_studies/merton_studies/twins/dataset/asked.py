"""The questions: sampled frames of a dataset, clean and distorted, to a policy; every answer is kept as it comes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from merton import __version__
from merton.decision.models.rows import PROMPT, TASK, RowPolicy, fingerprint, row_policy
from merton.decision.spread import Rows
from merton.errors import InputError, InvalidActionError
from merton.files import claim, whole_lines
from merton.perception.distortion.setting import Setting, setting_of
from merton.processes import carried_out
from merton.progress import OnProgress, unseen
from merton.results.text import one_line
from merton.seeding import derive_seed
from merton.world.observation import Image
from merton_studies.lerobot import layout
from merton_studies.lerobot.conditions import pictures_of
from merton_studies.lerobot.folder import Episode, LeRobotFolder, dataset_sha256

USUAL_EPISODES = 20
"""So many episodes, evenly over the dataset, where none are named."""
USUAL_EVERY_S = 1.0
"""A frame a second, where no other step is named."""
SETTINGS, ANSWERS = "asked.json", "asked.jsonl"
LONGEST_REASON = 300


@dataclass(frozen=True)
class Sample:
    """The frames that are asked about.

    Attributes:
        episodes: their numbers.
        every: from frame 0 on, each such frame of them.
    """

    episodes: tuple[int, ...]
    every: int


@dataclass(frozen=True)
class Answer:
    """A policy's answer to one frame under one setting: rows (n, columns), or why there are none."""

    rows: Rows | None
    why: str = ""


@dataclass(frozen=True)
class AskedFrame:
    """A frame and the answers to it.

    Attributes:
        episode, frame: its number, and that of its episode.
        task: its instruction.
        clean: the answer to its own pictures.
        again: the answer to them with another seed of noise, of the first frame of an episode; None of others.
        shown: setting to the answer to the distorted pictures.
    """

    episode: int
    frame: int
    task: str
    clean: Answer
    again: Answer | None
    shown: Mapping[Setting, Answer]


def sample_of(folder: LeRobotFolder, episodes: str | None, every: int | None) -> Sample:
    """The frames that are asked about.

    Args:
        episodes: such as "0:10" (the first ten) or "0,3,17"; None for `USUAL_EPISODES`, evenly over the dataset.
        every: None for a frame a second.

    Raises:
        InputError: another form, or an episode that the dataset does not have.
    """
    count = len(folder.episodes)
    if episodes is None:
        chosen = sorted({round(at) for at in np.linspace(0, count - 1, min(count, USUAL_EPISODES))})
    else:
        chosen = sorted({number for part in episodes.split(",") for number in _range(part, count)})
    return Sample(tuple(chosen), every or max(1, round(USUAL_EVERY_S * folder.fps)))


def _range(text: str, count: int) -> Sequence[int]:
    first, colon, last = text.strip().partition(":")
    try:
        begin = int(first) if first else 0
        end = begin + 1 if not colon else int(last) if last else count
    except ValueError:
        raise InputError(f'episodes are named as "0:10" or "0,3,17", got {text!r}') from None
    if not 0 <= begin < end <= count:
        raise InputError(f"the dataset has the episodes 0 to {count - 1}, got {text!r}")
    return range(begin, end)


def ask(
    folder: LeRobotFolder,
    policy: str,
    settings: Sequence[Setting],
    sample: Sample,
    out: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    on_progress: OnProgress = unseen,
) -> tuple[dict[str, Any], list[AskedFrame]]:
    """Ask a policy about all frames of a sample, or go on where an earlier call with the same arguments was ended.

    Args:
        folder: the dataset.
        policy: see `merton.decision.models.rows.row_policy`.
        settings: distortions, without level 0.
        out: a folder that is locked for this work; every episode is kept there as it is done.
        seed: of all noise.
        workers: processes, each with a policy of its own.

    Returns:
        Versions, seed and hashes (JSON values), and the frames in order.

    Raises:
        InputError: a fault in the dataset, an `out` with answers to other questions, pictures that the policy needs
            are missing, or its rows have another number of columns than the data set's actions.
        InvalidActionError: the policy gave no action for any frame.
        InfrastructureError: the policy could not be asked; the same call goes on.
    """
    about: dict[str, Any] = {
        "merton": __version__,
        "dataset": folder.path.resolve().name,
        "dataset_sha256": dataset_sha256(folder.path),
        "format": folder.version,
        "policy": policy,
        "policy_sha256": fingerprint(policy),
        "seed": seed,
        "episodes": list(sample.episodes),
        "every_frames": sample.every,
        "distortions": [setting.name for setting in settings],
    }
    claim(out / SETTINGS, about, "twins")
    there = _kept(out / ANSWERS)
    jobs = [
        (str(folder.path), policy, tuple(settings), number, sample.every, seed)
        for number in sample.episodes
        if number not in there
    ]
    total = len(sample.episodes)
    on_progress(len(there), total)
    with _journal(out / ANSWERS) as keep:
        for index, rows in carried_out(asked_episode, jobs, workers):
            keep(rows)
            there[jobs[index][3]] = rows
            on_progress(len(there), total)
    frames = [_frame(row) for number in sample.episodes for row in there[number]["frames"]]
    clean = [frame.clean for frame in frames]
    if all(answer.rows is None for answer in clean):
        raise InvalidActionError(f"{policy} gave no action in any of {len(clean)} clean frames: {clean[0].why}")
    return about, frames


def asked_episode(
    path: str, policy: str, settings: tuple[Setting, ...], number: int, every: int, seed: int
) -> dict[str, Any]:
    """The answers to the sampled frames of one episode, as JSON values."""
    folder = _folder(path)
    episode, model = folder.episodes[number], _policy(policy, tuple(folder.cameras))
    frames = range(0, episode.length, every)
    vectors = folder.rows(episode, folder.vectors(prefix=layout.OBSERVATION))
    tasks = folder.instructions(episode)
    columns = folder.rows(episode, [layout.ACTION])[layout.ACTION][0].size
    shown = {setting: pictures_of(setting, number, seed) for setting in settings}
    in_order = any(one.stream is not None for one in shown.values())  # a fault of time needs every frame
    asked = []
    for frame, pictures in together(folder, episode, range(frames[-1] + 1) if in_order else frames):
        distorted = {
            setting: one.show_all(frame, pictures)
            for setting, one in shown.items()
            if one.stream is not None or frame % every == 0
        }
        if frame % every:
            continue
        own = {name: np.asarray(rows[frame], np.float32) for name, rows in vectors.items()}
        rest = {**own, TASK: tasks[frame], PROMPT: tasks[frame]}
        noise = derive_seed(seed, "noise", str(number), str(frame))
        clean = _asked(model, {**pictures, **rest}, noise)
        _check_columns(clean, columns)
        asked.append({
            "frame": frame, "task": tasks[frame], "clean": clean,
            "again": _asked(model, {**pictures, **rest}, noise + 1) if frame == 0 else None,
            "shown": {setting.name: _asked(model, {**seen, **rest}, noise) for setting, seen in distorted.items()},
        })  # fmt: skip
    return {"episode": number, "frames": [{"episode": number, **row} for row in asked]}


def together(folder: LeRobotFolder, episode: Episode, frames: Sequence[int]) -> Iterator[tuple[int, dict[str, Image]]]:
    """The pictures of all cameras at each of these frames, in order."""
    streams = [folder.pictures(episode, key, frames) for key in folder.cameras]
    for found in zip(*streams, strict=True):
        yield found[0][0], dict(zip(folder.cameras, (picture for _, picture in found), strict=True))


def _asked(model: RowPolicy, observation: Mapping[str, Any], noise_seed: int) -> dict[str, Any]:
    """An answer as JSON values; one that is no action is an outcome, and has a reason."""
    try:
        return {"rows": model.ask(observation, noise_seed % 2**63).tolist()}
    except InvalidActionError as error:
        return {"why": one_line(error, LONGEST_REASON)}


def _check_columns(answer: Mapping[str, Any], columns: int) -> None:
    """Raises InputError if a policy's rows are no actions of the data set."""
    if "rows" in answer and len(answer["rows"][0]) != columns:
        raise InputError(
            f"the policy gives rows of {len(answer['rows'][0])} numbers, and an action of the data set has {columns}: "
            "it must answer in the data set's own units"
        )


def _frame(row: Mapping[str, Any]) -> AskedFrame:
    def answer(found: Mapping[str, Any]) -> Answer:
        rows = found.get("rows")
        return Answer(None if rows is None else np.asarray(rows, np.float64), str(found.get("why", "")))

    shown = {setting_of(name): answer(found) for name, found in row["shown"].items()}
    again = None if row["again"] is None else answer(row["again"])
    return AskedFrame(row["episode"], row["frame"], row["task"], answer(row["clean"]), again, shown)


def _kept(file: Path) -> dict[int, dict[str, Any]]:
    """The answers of an earlier call by episode; a last line that a killed call left torn is cut off."""
    return {row["episode"]: row for row in map(json.loads, whole_lines(file))}


@contextmanager
def _journal(file: Path) -> Iterator[Any]:
    """A function that appends a line for an episode, which is on the disk when it returns."""
    with file.open("ab") as journal:

        def keep(row: Mapping[str, Any]) -> None:
            journal.write(json.dumps(row).encode() + b"\n")
            journal.flush()
            os.fsync(journal.fileno())

        yield keep


@lru_cache(maxsize=1)
def _folder(path: str) -> LeRobotFolder:
    return LeRobotFolder(Path(path))


@lru_cache(maxsize=1)
def _policy(name: str, cameras: tuple[str, ...]) -> RowPolicy:
    return row_policy(name, cameras)
