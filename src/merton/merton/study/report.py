"""One self-contained HTML page about a run: board, curves, heat maps, single trials, ratings, methods, provenance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from merton.errors import InfrastructureError, InputError
from merton.files import written_whole
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.by_metric import metric_table
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Snapshot
from merton.leaderboard.snapshot.terminal import disagreements
from merton.pages import svg
from merton.pages.environment import environment
from merton.pages.words import date_and_time, percent
from merton.results import trial_files
from merton.results.metrics import METRICS
from merton.results.records import STAIRCASE, TrialRecord
from merton.results.statistics import mean
from merton.results.store import ResultStore
from merton.results.text import one_line, printable
from merton.study import figures, floors, gallery, models, outputs, pairs, sections, thresholds
from merton.study.attribution import Findings
from merton.study.stages import stages
from merton.study.thresholds import Threshold
from merton.study.values import VALUES
from merton.study.variance import Components, components

MAXIMUM = {"cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Score name to its maximum, in the order of the stages."""

CASES_SHOWN = 10
PAIRS_SHOWN = 45
"""Comparisons of two agents: all of ten agents."""
TROUBLES_SHOWN = 2000
"""Rows of the table of failures: more make the page slow. Ours."""
LEAST_LOSS = 0.01
"""Of success, to count as sensitive to distortion."""
BLIND_DECISION = 0.999
"""The decisions of an agent with a higher mean decision score do not depend on the image."""


def write_report(run_directory: Path | str) -> Path:
    """Write `report.html` into a run's directory and return its path; of a staircase `thresholds.csv` too.

    Reads run.json, experiment.yaml, results.sqlite and, for the gallery, trials/<id>/; files that a trial lacks are
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
    found = thresholds.thresholds(records) if _is_staircase(facts) else []
    page = render(run, facts, records, found)
    target = run / "report.html"
    _write(target, page)
    if found:
        _write(run / "thresholds.csv", thresholds.as_csv(found))
    return target


def render(
    run: Path, facts: Mapping[str, Any], records: Sequence[TrialRecord], found_thresholds: Sequence[Threshold] = ()
) -> str:
    """The page as text; `facts` is run.json, `run` the directory that holds trials/ and experiment.yaml."""
    board = snapshots.of_trials(records)
    agents = [row.id for row in board.agents]
    sensitive = [row.id for row in most_sensitive(board)] or agents
    rated = sorted((row for row in board.cases if row.standing), key=_by_difficulty)
    recorded = outputs.read(run, records)
    chance, lookers = floors.floors(recorded, board), [row.id for row in looking(board.agents)]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            facts=facts,
            when=date_and_time(facts.get("created")),
            headline=headline(board, found_thresholds),
            thresholds=found_thresholds,
            records=records,
            board=board,
            by_metric=metric_table(board.agents),
            disagreements=disagreements(board),
            domain=svg.rating_domain(row.standing for row in board.agents if row.standing and not row.standing.flag),
            floors=chance,
            model_studies=sections.model_studies(models.from_outputs(recorded)),
            decision_by_study_range=models.decision_by_study_range(recorded),
            stages=stages(records, lookers, _mean_floors(chance, lookers)),
            legend=list(enumerate(agents)),
            overview={
                stage: [sections.series(agent, index, records, stage) for index, agent in enumerate(agents)]
                for stage in MAXIMUM
            },
            curves=[
                (
                    distortion,
                    [
                        sections.series(agent, index, records, "execution", distortion)
                        for index, agent in enumerate(agents)
                    ],
                )
                for distortion in sections.distortions(records)
            ],
            heat={stage: sections.panels(records, agents, stage) for stage in MAXIMUM},
            cards=gallery.build(run, records, sensitive),
            troubles=(troubles := sections.troubles(records))[:TROUBLES_SHOWN],
            trouble_count=len(troubles),
            rated_cases=len(rated),
            hardest=rated[:CASES_SHOWN],
            easiest=sorted(rated, key=lambda row: (sections.rating(row.standing), row.id))[:CASES_SHOWN],
            case_domain=svg.rating_domain((row.standing for row in rated), of_agents=False),
            outlook=sections.mastery(board.agents, rated),
            provenance=list(_flat(facts)),
            variances=variances(records),
            pairs=(found := pairs.all_pairs(records, VALUES["success"]))[:PAIRS_SHOWN],
            pair_count=len(found),
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
            model_studies=sections.model_studies(table),
            decision_by_study_range=(),
            source=Path(scores).name,
            count=len(table.score),
        ),
    )
    return target


def write_attribution_page(findings: Findings, source: str, target: Path) -> Path:
    """Write a page with the shares of losses in the run called `source`; returns its path.

    Raises InfrastructureError if it cannot be written.
    """
    page = _environment().get_template("attribution.html.j2")
    _write(target, page.render(findings=findings, source=source))
    return target


def variances(records: Sequence[TrialRecord]) -> dict[str, Components]:
    """The variance components of each value that scatters."""
    found = {name: components(records, value) for name, value in VALUES.items()}
    return {name: parts for name, parts in found.items() if parts is not None and parts.total > 0.0}


def headline(board: Snapshot, found_thresholds: Sequence[Threshold] = ()) -> str:
    """One sentence: the size of the run, the agent that lost most success under distortion, the hardest distortion.

    Of a staircase, which drives all agents to the same success, the lowest threshold in their place, and the next one
    if the two cannot be told apart.
    """
    agents, trials = len(board.agents), sum(row.trials + row.infrastructure for row in board.agents)
    scenes = len({case.unit for case in board.cases})
    size = f"{agents} agent{'s' * (agents != 1)}, {trials} trial{'s' * (trials != 1)}"
    size += f" in {scenes} scene{'s' * (scenes != 1)}" if scenes else ""
    if found_thresholds:
        return f"{size}: {_first_threshold(found_thresholds)}."
    sensitive = most_sensitive(board)
    if not sensitive:
        return f"{size}: no agent has lost success under distortion."
    row = sensitive[0]
    before, after = percent(row.success_reference), percent(row.success_distorted)
    name = printable(row.id, 40)
    loss = f"{name} loses most under distortion, its success falls from {before} to {after}\u00a0%"
    hardest = _hardest(board.cases)
    return f"{size}: {loss}" + (f"; hardest: {hardest}." if hardest else ".")


def _first_threshold(found: Sequence[Threshold]) -> str:
    first, *rivals = thresholds.lowest(found)
    if first.level == math.inf:
        return "no agent's success falls to 75\u00a0% within the five levels"
    text = f"success falls to 75\u00a0% first for {_place(first)}"
    if rivals:
        text += f", which cannot be told apart from {_place(rivals[0])}"
    if len(rivals) > 1:
        text += f" and {len(rivals) - 1} other{'s' * (len(rivals) > 2)}"
    return text


def _place(item: Threshold) -> str:
    """Such as "servo under jpeg (level: 2.4)"."""
    where = f"{printable(item.agent, 40)} under {printable(item.distortion, 40)}"
    return f"{where} (level: {thresholds.words(item.level)})"


def most_sensitive(board: Snapshot) -> list[AgentRow]:
    """The agents that decide differently on distorted images and succeed less often on them, worst first."""

    def loss(row: AgentRow) -> float:
        if row.success_reference is None or row.success_distorted is None:
            return 0.0
        return row.success_reference - row.success_distorted

    found = looking(board.agents)
    return sorted((row for row in found if loss(row) > LEAST_LOSS), key=lambda row: (-loss(row), row.id))


def looking(rows: Iterable[AgentRow]) -> list[AgentRow]:
    """The agents whose decisions depend on the image, as far as is known.

    The decision score tells blindness from bad luck: an agent that never looks decides the same every time.
    """
    return [row for row in rows if row.decision is None or row.decision < BLIND_DECISION]


def _mean_floors(chance: Mapping[str, Mapping[str, floors.Floor]], agents: Iterable[str]) -> dict[str, float]:
    """Stage to the mean floor of these agents, of the two stages whose floor is the output for another scene."""
    found = {
        stage: mean(chance[agent][stage].floor for agent in agents if agent in chance)
        for stage in ("cognition", "decision")
    }
    return {stage: floor for stage, floor in found.items() if floor is not None}


def _write(target: Path, page: str) -> None:
    try:
        with written_whole(target) as file:
            file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        raise InfrastructureError(f"cannot write {target}: {error.strerror}") from error


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.study",
        figures=figures,
        threshold_words=thresholds.words,
        METRICS=METRICS,
        MAXIMUM=MAXIMUM,
        DIMENSION_LABELS=sections.DIMENSION_LABELS,
    )


def _by_difficulty(row: CaseRow) -> tuple[float, str]:
    """Hardest first."""
    return -sections.rating(row.standing), row.id


def _hardest(cases: Iterable[CaseRow]) -> str:
    """The distortion and level with the highest mean case rating, such as "max_darken 5"; "" if none can be named.

    Only those in which every scene was seen are compared: else a hard scene makes its distortion look hard. Where the
    level is drawn anew for each scene that is a distortion alone, such as "max_darken".
    """
    rated = [(case, case.standing.mean) for case in cases if case.level and case.standing]
    scenes = {case.unit for case, _ in rated}
    for label in (lambda case: f"{case.distortion} {case.level}", lambda case: case.distortion):
        seen: dict[str, set[object]] = {}
        ratings: dict[str, list[float]] = {}
        for case, rating in rated:
            seen.setdefault(label(case), set()).add(case.unit)
            ratings.setdefault(label(case), []).append(rating)
        if whole := [name for name in sorted(seen) if seen[name] == scenes]:
            return max(whole, key=lambda name: round(float(np.mean(ratings[name])), 6))
    return ""


def _is_staircase(facts: Mapping[str, Any]) -> bool:
    design = facts.get("design")
    return isinstance(design, Mapping) and design.get("levels") == STAIRCASE


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
