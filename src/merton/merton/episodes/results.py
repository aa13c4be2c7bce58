"""Success that is told after the episodes: a table of the program that carried them out, joined to a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.episodes.history import Past
from merton.episodes.names import safe_name
from merton.episodes.run import EpisodesRun
from merton.errors import InputError
from merton.results.tables import read_rows

COLUMNS = ("episode", "agent", "task", "scene", "distortion", "level", "part")
"""The columns that say which episode a row is about: its number alone, or as many of the others as make it one."""
SUCCESS = "success"
_TRUE, _FALSE = ("true", "1", "1.0", "yes", "success"), ("false", "0", "0.0", "no", "failure")


@dataclass(frozen=True)
class Joined:
    """What became of the rows of a table.

    Attributes:
        new: successes and failures that the run did not have.
        known: rows that it had, with the same success.
        left: recorded episodes that still have no result.
    """

    new: int
    known: int
    left: int


def join(run: EpisodesRun, table: Path) -> Joined:
    """Enter the successes of a table in a run; the same table again changes nothing.

    Args:
        run: open; its record is made anew at the end.
        table: .csv, .tsv, .jsonl or .parquet with the column `success` (true or false, 1 or 0), and `episode`, the
            number in the run, or `task`, `scene` and, where they are needed to tell episodes apart, `agent`,
            `distortion`, `level` and `part`.

    Raises:
        InputError: a row is about no recorded episode or about several, is no success, contradicts the run or another
            row; with the line. Nothing is entered then.
    """
    episodes = {past.number: past for past in run.episodes() if past.end is not None and past.is_recorded}
    told: dict[int, bool] = {}
    for where, row in read_rows(table, (SUCCESS,), COLUMNS):
        past, success = _found(where, row, episodes), _success(where, row[SUCCESS])
        if past.success is not None and past.success != success:
            raise InputError(f"{where}: {past.id} (episode {past.number}) has another success in the run already")
        if told.setdefault(past.number, success) != success:
            raise InputError(f"{where}: {past.id} (episode {past.number}) has another success in a line before")
    new = sum(run.told(number, success) for number, success in sorted(told.items()))
    run.refresh()
    return Joined(new, len(told) - new, run.counts.without_end)


def _found(where: str, row: dict[str, Any], episodes: Mapping[int, Past]) -> Past:
    """The episode that a row is about."""
    wanted = {name: row[name] for name in COLUMNS if row.get(name) not in (None, "")}
    if "episode" not in wanted and not {"task", "scene"} <= wanted.keys():
        raise InputError(f"{where}: needs the number of the episode, or its task and scene")
    task = wanted.get("task")
    tasks = () if task is None else (str(task), safe_name(str(task)))
    known: Collection[Past] = episodes.values()
    if "episode" in wanted:
        number = _whole(where, "episode", wanted["episode"])
        known = [episodes[number]] if number in episodes else []
    found = [past for past in known if all(_is(where, past, name, value, tasks) for name, value in wanted.items())]
    if len(found) == 1:
        return found[0]
    said = ", ".join(f"{name} {value}" for name, value in wanted.items())
    if not found:
        raise InputError(f"{where}: the run has no recorded episode with {said}")
    left = [name for name in ("agent", "distortion", "level", "part") if name not in wanted]
    more = f": add the column {' or '.join(left)}" if left else ""
    raise InputError(f"{where}: the run has {len(found)} recorded episodes with {said}{more}")


def _whole(where: str, name: str, value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise InputError(f"{where}: {name} must be a whole number, got {str(value)[:40]!r}") from None


def _is(where: str, past: Past, name: str, value: Any, tasks: Collection[str]) -> bool:
    """Whether an episode has a value in a column; `tasks` are the task of the row as it stands there and made safe."""
    if name in ("episode", "scene", "level"):
        own = {"episode": past.number, "scene": past.case.seed, "level": past.case.level}[name]
        return own == _whole(where, name, value)
    if name == "task":
        return past.case.task in tasks or str(value) == past.begin.get("name")
    return str(value) == {"agent": past.agent, "distortion": past.case.distortion, "part": past.condition.part}[name]


def _success(where: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InputError(f"{where}: success must be true or false, got {str(value)[:40]!r}")
