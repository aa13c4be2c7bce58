"""A snapshot arranged for pages: which agent met which case, the order of lists, and the file of each page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from merton.leaderboard.board import Board, BoardCell, BoardRow, group_cell
from merton.leaderboard.site.names import file_names
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Snapshot, Standing
from merton.leaderboard.snapshot.groups import TRIAL_BOARDS
from merton.perception.distortion import all_distortions
from merton.rating.predictions import predicted_score
from merton.results.metrics import DEFAULT_METRIC
from merton.results.text import distinct_names
from merton.statistics.means import mean

CASES_SHOWN = 5_000
"""The most cases with a page and a line in the list, the hardest first; the downloads hold all."""

LEVELS = range(1, 6)

MATRIX_COLUMNS = 60
"""The most cases of a source that stand side by side, the hardest."""

NAME = 80
"""Characters of a name on a page; a longer one loses its middle."""

TITLE_NAMES = 2
"""The most names of experiments and matrices in a title that is made of them."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """An agent on a case.

    Attributes:
        agent, case: indices into the snapshot.
        score: mean of their matches, 0..1.
        n: number of matches.
        expected: predicted by their ratings, 0..1; None if either is unrated.
    """

    agent: int
    case: int
    score: float
    n: int
    expected: float | None


@dataclass(frozen=True)
class Group:
    """An agent's scores on the cases of one kind, such as a task: `cell.n` counts cases."""

    label: str
    cell: BoardCell


@dataclass(frozen=True)
class HeatRow:
    """A line of a heat map: mean scores at levels 1..5 and over all of them, (score, cases) each; None if never met."""

    label: str
    family: str
    is_family: bool
    cells: tuple[tuple[float, int] | None, ...]


@dataclass(frozen=True)
class Matrix:
    """Agents against the cases of one source of imported scores.

    Attributes:
        source: whose cases.
        file: name of its page, without ending.
        cases: indices of the cases, hardest first, at most `MATRIX_COLUMNS`.
        beyond: number of further cases of the source.
        rows: the agents that met one of them, by rank.
    """

    source: str
    file: str
    cases: tuple[int, ...]
    beyond: int
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True)
class MatrixRow:
    """One agent's line.

    Attributes:
        agent: its index.
        mean: of all cells, 0..1; None if one is missing.
        cells: for each case (score, its place between the lowest and the highest of the column), both 0..1; None where
            the agent did not meet it.
    """

    agent: int
    mean: float | None
    cells: tuple[tuple[float, float] | None, ...]

    @property
    def lacking(self) -> int:
        """Number of missing cells."""
        return sum(cell is None for cell in self.cells)


def default_title(snapshot: Snapshot) -> str:
    """The names of the imported matrices and experiments in a snapshot, or how many there are; its own without any."""
    names = [*snapshot.sources, *snapshot.experiments]
    if not names:
        return snapshot.name
    if len(names) <= TITLE_NAMES:
        return " and ".join(names)
    counts = ((len(snapshot.sources), "imported matrices"), (len(snapshot.experiments), "experiments"))
    return " and ".join(f"{count} {noun}" for count, noun in counts if count)


class View:
    """A snapshot arranged for its pages.

    Attributes:
        title: of the site.
        names, case_names: the id of each agent and each case as it is shown; all different.
        matrices: agents against cases, for each source of imported scores.
        boards: the snapshot's, and those under published rules; a row's agent is an index if the snapshot has it.
        agent_files, case_files, board_files: file names of pages by id or name.
        is_fitted: whether the likelihood gives the ranks.
        by_agent, by_case: meetings by index.
        has_distorted: whether some case with a meeting is distorted.
        difficulty: indices of all cases, hardest first.
        shown: indices of the cases that have pages.
        place: index of a case to its place in `shown`.
    """

    def __init__(self, snapshot: Snapshot, published: Sequence[Board] = (), title: str | None = None) -> None:
        self.snapshot = snapshot
        self.title = title or default_title(snapshot)
        self.names = distinct_names((row.id for row in snapshot.agents), NAME)
        self.case_names = distinct_names((row.id for row in snapshot.cases), NAME)
        self.boards = all_boards(snapshot, published)
        self.agent_files = file_names(agent.id for agent in snapshot.agents)
        self.case_files = file_names(case.id for case in snapshot.cases)
        self.board_files = board_files(self.boards)
        self.is_fitted = any(agent.likelihood for agent in snapshot.agents)
        self.by_agent: list[list[Meeting]] = [[] for _ in snapshot.agents]
        self.by_case: list[list[Meeting]] = [[] for _ in snapshot.cases]
        for meeting in self._meetings():
            self.by_agent[meeting.agent].append(meeting)
            self.by_case[meeting.case].append(meeting)
        self.has_distorted = any(case.level and met for case, met in zip(snapshot.cases, self.by_case, strict=True))
        self.difficulty = sorted(range(len(snapshot.cases)), key=self._hardness)
        self.shown = self.difficulty[:CASES_SHOWN]
        self.place = {case: place for place, case in enumerate(self.shown)}
        files = file_names(f"cases-{source}" for source in snapshot.sources)
        self.matrices = [self._matrix(source, files[f"cases-{source}"]) for source in snapshot.sources]

    def standing(self, case: CaseRow) -> Standing | None:
        """The rating that orders the cases, by the method that ranks the agents."""
        return case.likelihood if self.is_fitted else case.agi_elo

    def family(self, case: CaseRow) -> str:
        """The family of a case's distortion; of an unknown one itself, and empty for a foreign case."""
        entry = all_distortions().get(case.distortion)
        return entry.category if entry else case.distortion

    def task(self, case: CaseRow) -> str:
        """The task of a case, or the source of a foreign one."""
        return case.task or case.source

    def meetings_shown(self, agent: int) -> list[Meeting]:
        """An agent's meetings with the cases that are shown, hardest first."""
        met = [meeting for meeting in self.by_agent[agent] if meeting.case in self.place]
        return sorted(met, key=lambda meeting: self.place[meeting.case])

    def by_task(self, agent: int) -> list[Group]:
        """An agent's scores of distorted trials by task, or of all if none is distorted; of foreign cases by source."""
        return self._grouped(agent, lambda case: "" if case.level == 0 and self.has_distorted else self.task(case))

    def by_family(self, agent: int) -> list[Group]:
        """An agent's scores of distorted trials by family of distortion, without foreign cases."""
        return self._grouped(agent, lambda case: self.family(case) if case.level else "")

    def heat(self, agent: int) -> list[HeatRow]:
        """An agent's distorted scores by distortion and level; each family's own line before its distortions."""
        cells: dict[tuple[str, str], dict[int, list[float]]] = {}
        for meeting in self.by_agent[agent]:
            case = self.snapshot.cases[meeting.case]
            if case.level:
                family = self.family(case)
                for key in {(family, ""), (family, case.distortion)}:
                    cells.setdefault(key, {}).setdefault(case.level, []).append(meeting.score)
        rows = []
        for (family, distortion), levels in sorted(cells.items()):
            if not distortion and sum(other == family for other, _ in cells) < 3:
                continue  # a family of one repeats its member
            found = [levels.get(level, []) for level in LEVELS]
            found.append([score for scores in found for score in scores])
            summary = tuple((mean(scores) or 0.0, len(scores)) if scores else None for scores in found)
            rows.append(HeatRow(distortion or family, family if distortion != family else "", not distortion, summary))
        return rows

    def board_rows(self, agent: int) -> list[tuple[Board, BoardRow]]:
        """Every board that has a row of the agent, and that row."""
        return [(board, row) for board in self.boards for row in board.rows if row.agent == agent]

    def is_of_trials(self, board: Board) -> bool:
        """Whether a board groups the trials of the snapshot; its agents have a drop beside its cells."""
        return board.name in TRIAL_BOARDS

    def shows_total(self, board: Board) -> bool:
        """Whether a board needs a column of totals: by success the total is the drop's distorted share already."""
        rows = (self.snapshot.agents[row.agent] for row in board.rows if isinstance(row.agent, int))
        return not (
            self.is_of_trials(board) and self.snapshot.metric == DEFAULT_METRIC and all(row.drop for row in rows)
        )

    def rated(self, method: str) -> tuple[list[tuple[AgentRow, Standing]], list[tuple[CaseRow, Standing]]]:
        """Agents and cases that have a rating by "likelihood" or "agi_elo"."""
        agents = [(agent, getattr(agent, method)) for agent in self.snapshot.agents if getattr(agent, method)]
        cases = [(case, getattr(case, method)) for case in self.snapshot.cases if getattr(case, method)]
        return agents, cases

    def _matrix(self, source: str, file: str) -> Matrix:
        cases = [index for index in self.difficulty if self.snapshot.cases[index].source == source]
        shown = cases[:MATRIX_COLUMNS]
        scores = {case: {meeting.agent: meeting.score for meeting in self.by_case[case]} for case in shown}
        ends = {case: (min(found.values()), max(found.values())) for case, found in scores.items() if found}

        def cell(case: int, agent: int) -> tuple[float, float] | None:
            if (score := scores[case].get(agent)) is None:
                return None
            low, high = ends[case]
            return score, (score - low) / (high - low) if high > low else 1.0

        rows = []
        for agent in range(len(self.snapshot.agents)):
            cells = tuple(cell(case, agent) for case in shown)
            met = [item[0] for item in cells if item is not None]
            if met:
                rows.append(MatrixRow(agent, mean(met) if len(met) == len(cells) else None, cells))
        return Matrix(source, file, tuple(shown), len(cases) - len(shown), tuple(rows))

    def _meetings(self) -> Iterable[Meeting]:
        for (agent, case), matches in groupby(self.snapshot.matches, key=itemgetter(0, 1)):  # they are sorted
            found = [score for _, _, score in matches]
            mine, its = self.snapshot.agents[agent].standing, self.standing(self.snapshot.cases[case])
            expected = predicted_score(mine.mean, its.mean) if mine and its else None
            yield Meeting(agent, case, sum(found) / len(found), len(found), expected)

    def _hardness(self, index: int) -> tuple[bool, float, str]:
        case = self.snapshot.cases[index]
        standing = self.standing(case)
        return standing is None, -standing.mean if standing else 0.0, case.id

    def _grouped(self, agent: int, kind: Callable[[CaseRow], str]) -> list[Group]:
        met: dict[str, list[Meeting]] = {}
        for meeting in self.by_agent[agent]:
            label = kind(self.snapshot.cases[meeting.case])
            if label:
                met.setdefault(label, []).append(meeting)
        return [Group(label, self._mean(found)) for label, found in sorted(met.items())]

    def _mean(self, meetings: Sequence[Meeting]) -> BoardCell:
        units = [self.snapshot.cases[meeting.case].unit for meeting in meetings]
        place = {unit: index for index, unit in enumerate(sorted(set(units)))}
        scenes = sum(is_scene for is_scene, _ in place)
        return group_cell([meeting.score for meeting in meetings], [place[unit] for unit in units], scenes)


def all_boards(snapshot: Snapshot, published: Sequence[Board] = ()) -> list[Board]:
    """The boards that the pages show: the snapshot's, and those under published rules as `View.boards` has them."""
    index = {agent.id: place for place, agent in enumerate(snapshot.agents)}
    own = [board for board in snapshot.boards if board.name != "source" or len(board.columns) > 1]
    return [*own, *(_beside_own(board, index) for board in published)]


def board_files(boards: Iterable[Board]) -> Mapping[str, str]:
    """The file name of the page of each board, by the board's name, without folder and ending."""
    return file_names(board.name for board in boards)


def _beside_own(board: Board, index: Mapping[str, int]) -> Board:
    """A published board under a name that no board of the snapshot has, its agents as indices where there is one."""
    rows = tuple(replace(row, agent=index.get(str(row.agent), row.agent)) for row in board.rows)
    return replace(board, name=f"published-{board.name}", rows=rows)
