"""The table of a response matrix: a row for each agent, or a row for each score, to agents, cases and cells.

The columns with the agents' ids and versions are known by their names (`AGENT_COLUMNS`, `VERSION_COLUMNS`, large and
small letters alike) or named by the caller. A first column without a name, as pandas writes its index, holds the agents
where no other does. A long table has an agent, a case (`CASE_COLUMNS`) and a score (`SCORE_COLUMNS`) in each row, and
nothing else but versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from merton.errors import InputError
from merton.results.checking import checked_name
from merton.results.csv_writer import FORMULA_STARTS
from merton.results.records import AgentRecord
from merton.results.tables import DECIMAL_COMMA, NAMELESS, Cells, plain_number, point_wanted, read_cells
from merton.results.text import one_line

AGENT_COLUMNS = ("agent", "model", "model_name", "system")
VERSION_COLUMNS = ("version", "revision", "model_revision")
CASE_COLUMNS = ("case", "task", "task_name", "benchmark", "dataset")
SCORE_COLUMNS = ("score", "value", "accuracy", "acc")
SUMMARIES = ("average", "avg", "mean", "overall", "total", "rank")
"""First words of what sums up the other cases, such as "Average score" or "Avg. ⬆️": no case itself."""
_TRUTH = {"true": 1.0, "false": 0.0}
_PERCENT = re.compile(r"(.+?)\s*%")

Cell = tuple[str, str, Any, str]
"""Agent, case, the cell, and where it stands."""


@dataclass(frozen=True)
class MatrixTable:
    """Agents, cases and cells of a table.

    Attributes:
        agents: in the order of their first rows.
        cases: in the order of the columns, or of their first rows.
        cells: each agent and case at most once.
        remarks: sentences on what was left out.
    """

    agents: tuple[AgentRecord, ...]
    cases: tuple[str, ...]
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...] = ()


def read_table(name: str, content: bytes, agent_column: str | None, version_column: str | None) -> MatrixTable:
    """The table in a file; see `read_cells` and the head of this module.

    Args:
        name: of the file.
        content: of the file.
        agent_column, version_column: where the names of the columns do not say.

    Raises:
        InputError: no such table, an agent or a score that stands twice, a name that may not be stored, a column of
            texts; with line and column.
    """
    rows = read_cells(name, content)
    _, header = next(rows)
    agent_at, version_at = _id_columns(name, header, agent_column, version_column)
    places = [place for place in range(len(header)) if place not in (agent_at, version_at)]
    if not places:
        raise InputError(f"{name} has no column of scores beside those of the agents")
    long = _long_columns(header, places)
    read = _long(rows, agent_at, version_at, *long) if long else _wide(name, header, rows, agent_at, version_at, places)
    if not read.agents:
        raise InputError(f"{name} has no agents: there is nothing below its header")
    return read


def is_matrix(header: Sequence[str]) -> bool:
    """Whether a header has a column of agents."""
    return any(column.lower() in AGENT_COLUMNS for column in header) or header[0] in NAMELESS


def _wide(
    name: str, header: Sequence[str], rows: Iterator[Cells], agent_at: int, version_at: int | None, places: list[int]
) -> MatrixTable:
    summaries = [place for place in places if _is_summary(header[place])]
    if len(places) - len(summaries) < 2:  # nothing to sum up
        summaries = []
    kept = [place for place in places if place not in summaries]
    for place in kept:
        stored_name(f"case in column {place + 1} of {name}", header[place])
    agents: dict[str, AgentRecord] = {}
    first_in: dict[str, str] = {}
    cells: list[Cell] = []
    for where, row in rows:
        agent, version = _agent(where, row, agent_at, version_at)
        if agent in agents:
            raise InputError(
                f"{where}: agent {agent!r} stands already in {first_in[agent]}; each agent has one row, "
                "unless the columns are agent, case and score alone"
            )
        agents[agent], first_in[agent] = AgentRecord(agent, version), where
        cells += [
            (agent, header[place], row[place], f"{where}, column {place + 1} ({header[place]})") for place in kept
        ]
    _refuse_texts(name, [(place + 1, header[place]) for place in kept], cells)
    return MatrixTable(
        tuple(agents.values()),
        tuple(header[place] for place in kept),
        tuple(cells),
        tuple(f"{one_line(header[place])} sums up the other columns and is left out." for place in summaries),
    )


def _long(rows: Iterator[Cells], agent_at: int, version_at: int | None, case_at: int, score_at: int) -> MatrixTable:
    agents: dict[str, AgentRecord] = {}
    cells: dict[tuple[str, str], Cell] = {}
    for where, row in rows:
        agent, version = _agent(where, row, agent_at, version_at)
        case = stored_name(f"case ({where})", cell_text(row[case_at]))
        known = agents.setdefault(agent, AgentRecord(agent, version))
        if known.version != version:
            raise InputError(f"{where}: agent {agent!r} had another version in a row before")
        if (agent, case) in cells:
            raise InputError(
                f"{where}: agent {agent!r} has a score of {one_line(case)!r} already in {cells[agent, case][3]}"
            )
        cells[agent, case] = (agent, case, row[score_at], where)
    cases = list(dict.fromkeys(case for _, case in cells))
    summaries = [case for case in cases if _is_summary(case)]
    if len(cases) - len(summaries) < 2:  # nothing to sum up
        summaries = []
    return MatrixTable(
        tuple(agents.values()),
        tuple(case for case in cases if case not in summaries),
        tuple(cell for cell in cells.values() if cell[1] not in summaries),
        tuple(f"{one_line(case)} sums up the other cases and is left out." for case in summaries),
    )


def _is_summary(name: str) -> bool:
    """Whether what is called so sums up other cases, by its first word."""
    return next(iter(re.findall(r"[^\W_]+", name.lower())), "") in SUMMARIES


def _agent(where: str, row: Sequence[Any], agent_at: int, version_at: int | None) -> tuple[str, str | None]:
    agent = stored_name(f"agent ({where})", cell_text(row[agent_at]))
    version = cell_text(row[version_at]) if version_at is not None else ""
    return agent, stored_name(f"version ({where})", version) if version else None


def _refuse_texts(name: str, columns: Sequence[tuple[int, str]], cells: Sequence[Cell]) -> None:
    """Raises InputError for a column that has texts and no number: it is not a case."""
    with_number: set[str] = set()
    texts: dict[str, list[str]] = {}
    for _, case, cell, _ in cells:
        if case not in with_number and cell_text(cell):
            if number_in_cell(cell, percent=True) is None:
                texts.setdefault(case, []).append(one_line(cell, 40))
            else:
                with_number.add(case)
    for number, column in columns:
        if column not in with_number and len(texts.get(column, ())) > 1:
            raise InputError(
                f"{name}: column {number} ({column}) holds no number but texts such as {texts[column][0]!r}: a matrix "
                "has scores alone beside agents and versions, so leave it out; a long table has the columns agent, "
                "case and score alone"
            )


def _id_columns(name: str, header: Sequence[str], agent: str | None, version: str | None) -> tuple[int, int | None]:
    """Places of the agents' ids and versions."""
    shown = ", ".join(repr(column[:40]) for column in header[:6]) or "none"
    found: list[int | None] = []
    for what, given, known in (("agents", agent, AGENT_COLUMNS), ("versions", version, VERSION_COLUMNS)):
        present = [
            place for place, column in enumerate(header) if (column == given if given else column.lower() in known)
        ]
        if given and not present:
            raise InputError(f"{name} has no column {given!r}; it has {shown}")
        if len(present) > 1:
            both = " and ".join(header[place] for place in present)
            raise InputError(f"{name} has the columns {both}; say which one holds the {what}")
        found.append(present[0] if present else None)
    if found[0] is None and header[0] in NAMELESS and found[1] != 0:
        found[0] = 0
    if found[0] is None:
        raise InputError(
            f"{name} has no column of agents, called {', '.join(AGENT_COLUMNS)} or as you say; it has {shown}"
        )
    return found[0], found[1]


def _long_columns(header: Sequence[str], places: Sequence[int]) -> tuple[int, int] | None:
    """Places of case and score of a long table; None for a table with a row for each agent."""
    cases, scores = (
        [place for place in places if header[place].lower() in known] for known in (CASE_COLUMNS, SCORE_COLUMNS)
    )
    return (cases[0], scores[0]) if len(places) == 2 and len(cases) == len(scores) == 1 else None


def score_of(cell: Any, where: str, to_score: Callable[[float], float] | None) -> float | None:
    """The score in 0..1 of a cell; None if it is blank.

    Args:
        cell: a number; where `to_score` is None also a truth value (1 or 0) or a percentage with its sign.
        where: for messages.
        to_score: as for `matrix.read_matrix`.

    Raises:
        InputError: another value, or one out of range.
    """
    if not cell_text(cell):
        return None
    score = number_in_cell(cell, percent=to_score is None)
    if score is None or (to_score is not None and cell_text(cell).lower() in _TRUTH):
        raise InputError(
            f"{where}: {one_line(cell, 40)!r} is not a number{point_wanted(cell)}; leave the cell blank if there is no "
            "score"
        )
    if to_score is not None:
        try:
            return to_score(score)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if not 0.0 <= score <= 1.0:
        raise InputError(
            f"{where}: the score {score!r} is not in 0 .. 1; rescale the matrix first, or say by --metric what it holds"
        )
    return score + 0.0


def number_in_cell(cell: Any, percent: bool) -> float | None:
    """The number in a cell, 1 or 0 of a truth value, a share where `percent` says so; None for anything else."""
    if isinstance(cell, bool):
        return float(cell)
    if not isinstance(cell, str):
        return plain_number(cell)
    text = cell.strip()
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    of_hundred = _PERCENT.fullmatch(text) if percent else None
    plain = of_hundred[1] if of_hundred else text
    value = plain_number(plain.replace(",", ".") if DECIMAL_COMMA.fullmatch(plain) else plain)
    return value / 100 if of_hundred and value is not None else value


def cell_text(cell: Any) -> str:
    """A cell as text without white space around it, "" for none."""
    return "" if cell is None else str(cell).strip()


def stored_name(what: str, name: str) -> str:
    """A name that may be stored and shown; raises InputError for long, invisible or formula-like ones."""
    checked_name(what, name)
    if name.startswith(FORMULA_STARTS):
        raise InputError(f"the {what} looks like a formula of a spreadsheet: {name[:80]!r}")
    return name
