"""One self-contained HTML page about a run: board, curves, heat maps, single trials, ratings, methods, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from merton.errors import InfrastructureError, InputError
from merton.files import written_whole
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Snapshot, Standing
from merton.leaderboard.terminal import disagreements
from merton.pages import svg
from merton.pages.environment import environment
from merton.pages.words import date_and_time, percent
from merton.rating.predictions import predicted_score
from merton.results import trial_files
from merton.results.records import Outcome, TrialRecord
from merton.results.statistics import mean
from merton.results.store import ResultStore
from merton.results.text import one_line, printable
from merton.study import figures, floors, gallery, models, outputs

MAXIMUM = {"cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Score name to its maximum, in the order of the stages."""

CASES_SHOWN = 10
TROUBLES_SHOWN = 2000
"""Rows of the table of failures: more make the page slow. Ours."""
BLIND_DECISION = 0.999
"""An agent with a mean decision score above this does not look at the image."""

DIMENSION_LABELS = {
    "cognition": "cognition, total",
    "bleu": "BLEU (precision)",
    "rouge_l": "ROUGE-L (recall)",
    "cider": "CIDEr (semantics)",
    "decision": "decision, total",
    "position": "position",
    "rotation": "rotation",
    "state": "state (gripper)",
}
"""Dimension to how the report calls it; in brackets the paper's word."""


@dataclass(frozen=True)
class Panel:
    """One agent's heat map: rows of (distortion, cells of levels 1..5); a cell is a Point or None."""

    agent: str
    reference: float | None
    rows: tuple[tuple[str, tuple[figures.Point | None, ...]], ...]


@dataclass(frozen=True)
class ModelStudy:
    """One stage of the study of models.

    Attributes:
        dimensions: the total and the three dimensions, as far as there are scores.
        charts: model to its line for each dimension.
        profiles: dimension to its models.
        correlations: dimension, totals apart, to its matrix; empty for fewer than two models.
    """

    dimensions: tuple[str, ...]
    charts: dict[str, list[figures.Series]]
    profiles: dict[str, list[models.Profile]]
    correlations: dict[str, models.Correlation]


def write_report(run_directory: Path | str) -> Path:
    """Write `report.html` into a run's directory and return its path.

    Reads run.json, experiment.yaml, results.sqlite and, for the gallery, trials/<id>/; what a trial did not keep is
    shown as missing. The page needs no other file and makes no request.

    Raises:
        InputError: there is no such run, or its run.json or results.sqlite is missing or unreadable.
        InfrastructureError: the page cannot be written.
    """
    run = Path(run_directory)
    if not run.is_dir():
        raise InputError(f"there is no run at {run}")
    facts = trial_files.json_object(run / "run.json")
    if facts is None:
        raise InputError(f"{run / 'run.json'} is missing or is not a JSON object")
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = [record for experiment in store.experiments() for record in store.records(experiment)]
    page = render(run, facts, records)
    target = run / "report.html"
    _write(target, page)
    return target


def render(run: Path, facts: Mapping[str, Any], records: Sequence[TrialRecord]) -> str:
    """The page as text; `facts` is run.json, `run` the directory that holds trials/ and experiment.yaml."""
    board = snapshots.of_trials(records)
    agents = [row.id for row in board.agents]
    sensitive = [row.id for row in most_sensitive(board)] or agents
    rated = sorted((row for row in board.cases if row.standing), key=_by_difficulty)
    kept = outputs.read(run, records)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            facts=facts,
            when=date_and_time(facts.get("created")),
            headline=headline(board),
            records=records,
            board=board,
            disagreements=disagreements(board),
            domain=svg.rating_domain(row.standing for row in board.agents if row.standing and not row.standing.flag),
            floors=floors.floors(kept, board),
            model_studies=model_studies(models.from_outputs(kept)),
            decision_by_study_range=models.decision_by_study_range(kept),
            legend=list(enumerate(agents)),
            overview={
                stage: [_series(agent, index, records, stage) for index, agent in enumerate(agents)]
                for stage in MAXIMUM
            },
            curves=[
                (
                    distortion,
                    [_series(agent, index, records, "execution", distortion) for index, agent in enumerate(agents)],
                )
                for distortion in _distortions(records)
            ],
            heat={stage: _panels(records, agents, stage) for stage in MAXIMUM},
            cards=gallery.build(run, records, sensitive),
            troubles=(troubles := _troubles(records))[:TROUBLES_SHOWN],
            trouble_count=len(troubles),
            rated_cases=len(rated),
            hardest=rated[:CASES_SHOWN],
            easiest=sorted(rated, key=lambda row: (_rating(row.standing), row.id))[:CASES_SHOWN],
            case_domain=svg.rating_domain((row.standing for row in rated), of_agents=False),
            outlook=_outlook(board.agents, rated),
            provenance=list(_flat(facts)),
            experiment=_experiment_text(run / "experiment.yaml"),
        )
    )


def write_models_page(scores: Path | str, target: Path) -> Path:
    """Write a page with the study of models of annotated scores, a Parquet `models.ScoreTable`; returns its path.

    Raises:
        InputError: `scores` holds no such table.
        MissingDependencyError: pyarrow is not installed.
        InfrastructureError: the page cannot be written.
    """
    table = models.from_parquet(scores)
    page = _environment().get_template("models_page.html.j2")
    _write(
        target,
        page.render(
            model_studies=model_studies(table),
            decision_by_study_range=(),
            source=Path(scores).name,
            count=len(table.score),
        ),
    )
    return target


def model_studies(table: models.ScoreTable) -> dict[str, ModelStudy]:
    """The study of models by stage, of the stages that have scores."""
    studies = {}
    for stage, dimensions in models.stages(table).items():
        profiles = {dimension: models.profiles(table, dimension) for dimension in dimensions}
        charts: dict[str, list[figures.Series]] = {}
        for index, (dimension, found) in enumerate(profiles.items()):
            for profile in found:
                points = (
                    figures.Point(level, cell.mean, None, cell.n)
                    for level, cell in enumerate(profile.levels)
                    if cell is not None
                )
                line = figures.Series(DIMENSION_LABELS[dimension], index, tuple(points))
                charts.setdefault(profile.model, []).append(line)
        correlations = {
            dimension: models.correlation(table, dimension)
            for dimension in dimensions
            if dimension != stage and len(profiles[dimension]) > 1
        }
        studies[stage] = ModelStudy(dimensions, charts, profiles, correlations)
    return studies


def headline(board: Snapshot) -> str:
    """One sentence: how large the run is, who lost most under distortion, and which distortion is hardest."""
    agents, trials = len(board.agents), sum(row.trials + row.infrastructure for row in board.agents)
    size = f"{agents} agent{'s' * (agents != 1)}, {trials} trial{'s' * (trials != 1)}"
    sensitive = most_sensitive(board)
    if not sensitive:
        return f"{size}: no agent has lost execution score under distortion."
    name, share = printable(sensitive[0].id, 40), percent(sensitive[0].share_under_distortion)
    kept = f"{name} keeps {share}\u00a0% of its execution score under distortion"
    hardest = _hardest(board.cases)
    return f"{size}: {kept}" + (f"; hardest: {hardest}." if hardest else ".")


def most_sensitive(board: Snapshot) -> list[AgentRow]:
    """The agents that decide differently on distorted images and lose more than a point of execution, worst first."""

    def loss(row: AgentRow) -> float:
        if row.execution_reference is None or row.execution_distorted is None:
            return 0.0
        return row.execution_reference - row.execution_distorted

    # The decision score tells blindness from bad luck: an agent that never looks decides the same every time.
    looking = [row for row in board.agents if row.decision is None or row.decision < BLIND_DECISION]
    return sorted((row for row in looking if loss(row) > 1.0), key=lambda row: (-loss(row), row.id))


def _write(target: Path, page: str) -> None:
    try:
        with written_whole(target) as file:
            file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        raise InfrastructureError(f"cannot write {target}: {error.strerror}") from error


@cache
def _environment() -> jinja2.Environment:
    return environment("merton.study", figures=figures, MAXIMUM=MAXIMUM, DIMENSION_LABELS=DIMENSION_LABELS)


def _by_difficulty(row: CaseRow) -> tuple[float, str]:
    """Hardest first."""
    return -_rating(row.standing), row.id


def _rating(standing: Standing | None) -> float:
    assert standing is not None
    return standing.mean


def _hardest(cases: Iterable[CaseRow]) -> str:
    """The distortion and level with the highest mean case rating, such as "max_darken 5"; "" if none is rated."""
    by_kind: dict[tuple[str, int], list[float]] = {}
    for case in cases:
        if case.level and case.standing:
            by_kind.setdefault((case.distortion, case.level), []).append(case.standing.mean)
    if not by_kind:
        return ""
    name, level = max(sorted(by_kind), key=lambda kind: round(float(np.mean(by_kind[kind])), 6))
    return f"{name} {level}"


def _distortions(records: Iterable[TrialRecord]) -> list[str]:
    return sorted({record.case.distortion for record in records if not record.case.is_reference})


def _point(level: int, scores: Sequence[float]) -> figures.Point | None:
    if not scores:
        return None
    error = float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else None
    return figures.Point(level, float(np.mean(scores)), error, len(scores))


def _series(
    agent: str, index: int, records: Iterable[TrialRecord], stage: str, distortion: str | None = None
) -> figures.Series:
    scores: dict[int, list[float]] = {level: [] for level in figures.LEVELS}
    for record in records:
        score = getattr(record, stage)
        fits = distortion is None or record.case.is_reference or record.case.distortion == distortion
        if record.agent == agent and score is not None and fits:
            scores[record.case.level].append(score)
    points = (_point(level, found) for level, found in scores.items())
    return figures.Series(printable(agent, 40), index, tuple(point for point in points if point is not None))


def _panels(records: Sequence[TrialRecord], agents: Sequence[str], stage: str) -> list[Panel]:
    scores: dict[tuple[str, str, int], list[float]] = {}
    for record in records:
        score = getattr(record, stage)
        if score is not None:
            scores.setdefault((record.agent, record.case.distortion, record.case.level), []).append(score)
    distortions, scored = _distortions(records), {agent for agent, _, _ in scores}
    return [
        Panel(
            agent,
            mean(scores.get((agent, "reference", 0), [])),
            tuple(
                (name, tuple(_point(level, scores.get((agent, name, level), [])) for level in figures.LEVELS[1:]))
                for name in distortions
            ),
        )
        for agent in agents
        if agent in scored
    ]


def _troubles(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Every trial that did not succeed, the rarer and graver outcomes before plain failures."""
    order = [Outcome.EMERGENCY_STOP, Outcome.INVALID_ACTION, Outcome.INFRASTRUCTURE, Outcome.FAILURE]
    found = [record for record in records if record.outcome is not Outcome.SUCCESS]
    return sorted(found, key=lambda record: (order.index(record.outcome), record.id))


def _outlook(
    agents: Iterable[AgentRow], hardest_first: Sequence[CaseRow]
) -> list[tuple[str, float, list[tuple[float, tuple[float, float]]]]]:
    """Agent, predicted score on the hardest case, and gaps to scoring 50, 90 and 99 % on it with their intervals."""
    if not hardest_first:
        return []
    hardest = _rating(hardest_first[0].standing)
    return [
        (
            row.id,
            predicted_score(row.standing.mean, hardest),
            [(gap.gap, gap.interval) for gap in row.gaps if gap.quantile == 1.0],
        )
        for row in agents
        if row.standing
    ]


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} · ")
        else:
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            yield one_line(f"{prefix}{key}", 80), one_line(text, 300)


def _experiment_text(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace")[:200_000].splitlines()
    except OSError:
        return ""
    return "\n".join(printable(line, 400) for line in lines)
