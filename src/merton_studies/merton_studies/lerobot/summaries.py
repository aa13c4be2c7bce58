"""The statistics of a copy's pictures, in place of the original's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.files import write_file
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton_studies.lerobot import layout
from merton_studies.lerobot.folder import LeRobotFolder, json_lines
from merton_studies.lerobot.rewriting import Done, Shades
from merton_studies.lerobot.statistics import Statistics, of_shades

LEAST = ("min", "max", "mean", "std", "count")
"""What every version has, where the original says nothing of a camera."""


def renew_statistics(folder: LeRobotFolder, out: Path, keys: Collection[str], done: Iterable[Done]) -> None:
    """Write the statistics of these cameras into the copy's files, exact, over all pixels; all others stay.

    Raises InfrastructureError if a file cannot be written.
    """
    shades: dict[tuple[int, str], Shades] = {}
    for one in done:
        shades |= one.shades
    _whole(folder, out, keys, shades)
    if folder.version == layout.NEWEST:
        _rows_of_episodes(folder, out, keys, shades)
    elif (file := folder.path / layout.EPISODES_STATS_2).is_file():
        lines = json_lines(file)
        for at, line in enumerate(lines, 1):
            number, stats = line.get("episode_index"), line.get("stats")
            if not (isinstance(stats, dict) and isinstance(number, int) and 0 <= number < len(folder.episodes)):
                raise InputError(f"{file}, line {at}: is no statistics of one of the {len(folder.episodes)} episodes")
            for key in keys:
                found = of_shades(shades[number, key], folder.episodes[number].length)
                stats[key] = _as_before(found, stats.get(key))
        write_file(out / layout.EPISODES_STATS_2, "".join(f"{json.dumps(line)}\n" for line in lines).encode())


def _whole(folder: LeRobotFolder, out: Path, keys: Collection[str], shades: Mapping[tuple[int, str], Shades]) -> None:
    """meta/stats.json, where the original has one."""
    if not (folder.path / layout.STATS).is_file():
        return
    stats = dict(folder.stats)
    for key in keys:
        total = np.sum([shades[episode.index, key] for episode in folder.episodes], axis=0)
        frames = sum(episode.length for episode in folder.episodes)
        stats[key] = _as_before(of_shades(total, frames), stats.get(key))
    write_file(out / layout.STATS, f"{json.dumps(stats, indent=4)}\n".encode())


def _rows_of_episodes(
    folder: LeRobotFolder, out: Path, keys: Collection[str], shades: Mapping[tuple[int, str], Shades]
) -> None:
    """The columns stats/<camera>/<name> of the tables of episodes (3.0)."""
    arrow = require_pyarrow()
    for file in sorted((folder.path / layout.EPISODES).glob("*/*.parquet")):
        table = arrow.parquet.read_table(file, partitioning=None)
        numbers = table.column("episode_index").to_pylist()
        for key in keys:
            found = [of_shades(shades[number, key], folder.episodes[number].length) for number in numbers]
            for at, field in enumerate(table.schema):
                if field.name.startswith(f"stats/{key}/") and (name := field.name.rpartition("/")[2]) in found[0]:
                    values = arrow.array([one[name] for one in found], type=field.type)
                    table = table.set_column(at, field, values)
        write_file(out / file.relative_to(folder.path), parquet_bytes(table))


def _as_before(found: Statistics, before: Any) -> Statistics:
    """The statistics that the original has of a camera."""
    names = [name for name in before if name in found] if isinstance(before, dict) else [*LEAST]
    return {name: found[name] for name in names}
