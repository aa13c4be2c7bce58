"""One self-contained HTML page about a run: agents, losses, single trials, failures, curves, ratings, provenance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from merton.errors import InputError
from merton.files import write_file
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.by_metric import metric_table
from merton.leaderboard.snapshot.contents import CaseRow
from merton.leaderboard.snapshot.terminal import disagreements
from merton.pages import svg
from merton.pages.environment import environment
from merton.pages.words import date_and_time, flat
from merton.results import export, trial_files
from merton.results.losses import Loss, by_agent
from merton.results.metrics import METRICS
from merton.results.parquet import metadata, read_schema
from merton.results.recorded_world import in_brief, world_of
from merton.results.records import TrialRecord
from merton.results.store import ResultStore
from merton.results.text import places, printable
from merton.statistics.means import mean
from merton.study import (
    beside,
    blindness,
    episode_notes,
    execution_page,
    execution_study,
    figures,
    floors,
    gallery,
    losses,
    models,
    outputs,
    pairs,
    run_files,
    sections,
    thresholds,
    trial_table,
)
from merton.study.attribution import Findings
from merton.study.attribution_finding import finding, unseeing_sentence
from merton.study.headline import headline, leading_drop, most_sensitive, size, trial_count
from merton.study.models_finding import models_finding
from merton.study.stages import stages
from merton.study.thresholds import Threshold
from merton.study.values import VALUES
from merton.study.variance import Components, components, equal_agents, left_out_sentences

MAXIMUM = {"success": 100.0, "cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Success, then the stages in their order, to the maximum of the score; success is in percent."""

STAGES = ("cognition", "decision", "execution")

TITLES = {
    "thresholds": "Thresholds",
    "results": "Results",
    "losses": "By distortion and task",
    "gallery": "What breaks it",
    "trials": "Trials",
    "curves": "Dose and response",
    "heat": "Heat maps",
    "stages": "Stages",
    "execution": "Execution study",
    "evidence": "How sure",
    "floors": "Above chance",
    "models": "Models",
    "cases": "Test cases",
    "methods": "Methods",
    "files": "Files and provenance",
}
"""Anchor of a section to its heading, which is also its word in the menu; in the order of the page."""

GROUPS_SHOWN = 10
"""Distortions, and tasks, that are not folded away: the costliest."""
CARDS_OPEN = 2

NOT_SHOWN = ("design", "pairs", "decision", "without_decision", "successes", "scenes_that_differ_between_agents")
"""Entries of the run.json of episodes that the page has elsewhere."""

CASES_SHOWN = 10
PAIRS_SHOWN = 45
"""Comparisons of two agents: all of ten agents."""


def write_report(run_directory: Path | str, planned: int | None = None) -> Path:
    """Write `report.html`, `trials.csv` and `model_scores.csv` into a run's directory; of a staircase `thresholds.csv`.

    Reads run.json, experiment.yaml, results.sqlite and, for the pictures, trials/<id>/; files that a trial lacks are
    shown as missing. The page needs no other file and makes no request; its links lead to files of the run.

    Args:
        run_directory: of the run.
        planned: how many trials it has when it is finished; with fewer the report says so.

    Returns:
        The path of report.html.

    Raises:
        InputError: there is no such run, or its run.json or results.sqlite is missing or unreadable.
        InfrastructureError: a file cannot be written.
    """
    run = Path(run_directory)
    if not run.is_dir():
        raise InputError(f"there is no run at {run}")
    facts = trial_files.json_object(run / "run.json")
    if facts is None:
        raise InputError(f"{run / 'run.json'} is missing or is not a JSON object")
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = [record for experiment in store.experiments() for record in store.records(experiment)]
        recorded = beside.scored(outputs.read(run, records))
        export.export(store, run / "trials.csv", further=beside.by_trial(recorded))
    scores = beside.stage_scores(recorded)
    if not trial_files.is_of_episodes(facts):
        _write(run / "model_scores.csv", beside.as_csv(scores))
    found = thresholds.thresholds(records) if thresholds.is_staircase(facts) else []
    if found:
        _write(run / "thresholds.csv", thresholds.as_csv(found))
    target = run / "report.html"
    _write(target, render(run, facts, records, recorded, scores, found, planned))
    return target


def render(
    run: Path,
    facts: Mapping[str, Any],
    records: Sequence[TrialRecord],
    recorded: Sequence[outputs.Output],
    stage_scores: Mapping[str, Sequence[beside.StageScore]],
    found_thresholds: Sequence[Threshold] = (),
    planned: int | None = None,
) -> str:
    """The page as text; `facts` is run.json, `run` the directory that holds trials/ and experiment.yaml.

    `recorded` are the outputs of the trials, as `beside.scored` gives them, and `stage_scores` their means.
    """
    board = snapshots.of_trials(records)
    agents = [row.id for row in board.agents]
    blind = blindness.blind_agents(records, blindness.declared_blind(facts))
    lookers = [agent for agent in agents if agent not in blind]
    lost = by_agent(records)
    leading = None if found_thresholds else leading_drop(lost, blind)
    shown, of_episodes, world = measured(facts, records), trial_files.is_of_episodes(facts), world_of(facts)
    study = execution_study.execution_study(run, records) if lookers and "execution" in shown else None
    rated = sorted((row for row in board.cases if row.standing), key=_by_difficulty)
    chance = floors.of_episodes(facts, board) if of_episodes else floors.floors(recorded, board, blind)
    cards = gallery.build(run, _gallery_trials(run, records, lost, blind), world)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            facts=facts,
            when=date_and_time(facts.get("created")),
            shown_stages=shown,
            **_kind_of_run(run, facts, records, of_episodes),
            headline=headline(board, lost, found_thresholds, planned, blind),
            size=size(board, facts.get("wall_s"), blind),
            blind=blind,
            unseeing=[printable(agent, 40) for agent in agents if agent in blind and lookers],
            shrunken=leading is not None and leading.shrunken is not None,
            planned=planned,
            unfinished=planned is not None and trial_count(board) < planned,
            thresholds=found_thresholds,
            records=records,
            board=board,
            agents=agents,
            slots=svg.series_slots(agents),
            by_metric=metric_table(board.agents),
            disagreements=disagreements(board),
            domain=svg.rating_domain(row.standing for row in board.agents if row.standing and not row.standing.flag),
            lost=lost,
            breakdowns=_breakdowns(records, agents, lookers),
            floors=chance,
            model_studies=sections.model_studies(models.from_outputs(recorded)),
            stage_scores=stage_scores,
            decision_by_study_range=models.decision_by_study_range(recorded),
            models_open=False,
            stages=stages(records, lookers, _mean_floors(chance, lookers)) if len(shown) == len(STAGES) else None,
            execution_study=study and execution_page.fragment(study),
            cards=cards,
            seen_under={card.record.case.distortion: f"seen-{number}" for number, card in enumerate(cards, start=1)},
            rated_cases=len(rated),
            hardest=rated[:CASES_SHOWN],
            easiest=sorted(rated, key=lambda row: (sections.rating(row.standing), row.id))[:CASES_SHOWN],
            case_domain=svg.rating_domain((row.standing for row in rated), of_agents=False),
            outlook=sections.mastery(board.agents, rated),
            **_scatter(records, ("success", *shown) if of_episodes or world else tuple(VALUES)),
            files=run_files.present(run),
            added_references=run_files.added_references(run),
            **_pairs(records),
            trials=trial_table.table(run, records, lookers or agents, of_episodes),
            run_name=run.name,
            **_curves(records, agents, {output.agent: output.models["cognition"] for output in recorded}),
        )
    )


def measured(facts: Mapping[str, Any], records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """The stages that a page speaks of: all of an experiment in the cell; else those that some trial has a score of."""
    if not trial_files.is_of_episodes(facts) and world_of(facts) is None:
        return STAGES
    return tuple(stage for stage in STAGES if any(getattr(record, stage) is not None for record in records))


def _scatter(records: Sequence[TrialRecord], names: Sequence[str]) -> dict[str, Any]:
    """The variance components of values, and the agents that are left out of them."""
    left_out = {name: equal_agents(records, value) for name, value in VALUES.items() if name in names}
    return {"variances": variances(records), "left_out": left_out}


def _kind_of_run(
    run: Path, facts: Mapping[str, Any], records: Sequence[TrialRecord], of_episodes: bool
) -> dict[str, Any]:
    """All that a page says otherwise of another world's trials, and of episodes that another program carried out."""
    plan = trial_files.DESIGN_FILE if of_episodes else "experiment.yaml"
    world = world_of(facts)
    return {
        "world": world,
        "has_distance": world is None or any(record.distance_m is not None for record in records),
        "is_of_episodes": of_episodes,
        "episode_notes": episode_notes.episode_notes(facts, records),
        "told": episode_notes.told(facts),
        "provenance": flat(
            {key: told for key, told in in_brief(facts).items() if not (of_episodes and key in NOT_SHOWN)}
        ),
        "plan_file": plan,
        "experiment": _experiment_text(run / plan),
    }


def film_records(run: Path) -> list[TrialRecord]:
    """The trials of the cards that move in a run's report: those of which a film is worth making.

    Raises:
        InputError: its results.sqlite is missing.
    """
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = [record for experiment in store.experiments() for record in store.records(experiment)]
    blind = blindness.blind_agents(records, blindness.declared_blind(trial_files.json_object(run / "run.json") or {}))
    return [record for record, _ in _gallery_trials(run, records, by_agent(records), blind)[: gallery.CLIPS_SHOWN]]


def _gallery_trials(
    run: Path, records: Sequence[TrialRecord], lost: Mapping[str, Loss], blind: Collection[str]
) -> list[tuple[TrialRecord, dict[str, Any]]]:
    """The trials of the cards, of the agents that depend on what they see; of all, by name, if none does."""
    sensitive = most_sensitive(lost, blind) or sorted({record.agent for record in records})
    return gallery.chosen(run, records, sensitive, losses.by_distortion(records, sensitive))


def _breakdowns(
    records: Sequence[TrialRecord], agents: Sequence[str], lookers: Sequence[str]
) -> list[tuple[str, list[losses.Group]]]:
    """By distortion and by task: the losses of agents that look, or else of all."""
    shown = lookers or agents
    return [
        (word, divide(records, shown))
        for word, divide in (("distortion", losses.by_distortion), ("task", losses.by_task))
    ]


def _pairs(records: Sequence[TrialRecord]) -> dict[str, Any]:
    """The comparisons of two agents, and how many there are and are resolved, shown or not."""
    found = pairs.all_pairs(records, VALUES["success"])
    resolved = sum(pair.is_resolved for pair in found)
    return {"pairs": found[:PAIRS_SHOWN], "pair_count": len(found), "resolved_count": resolved}


def _curves(records: Sequence[TrialRecord], agents: Sequence[str], vlms: Mapping[str, str]) -> dict[str, Any]:
    """The series of the charts and the panels of the heat maps; cognition is that of VLMs, all else that of agents."""
    users = sections.users(vlms, agents)
    of_vlms = sections.of_models(records, vlms)

    def players(stage: str) -> tuple[Sequence[str], Sequence[TrialRecord]]:
        return (list(users), of_vlms) if stage == "cognition" else (agents, records)

    apart = {stage: sections.by_player(players(stage)[1]) for stage in ("cognition", "success")}

    def lines(stage: str, distortion: str | None = None) -> list[figures.Series]:
        names, _ = players(stage)
        slots, found = svg.series_slots(names), apart["cognition" if stage == "cognition" else "success"]
        return [sections.series(name, slots[name], found.get((name, distortion), ()), stage) for name in names]

    return {
        "vlm_users": users,
        "vlm_slots": svg.series_slots(users),
        "overview": {stage: lines(stage) for stage in MAXIMUM},
        "curves": [(name, lines("success", name)) for name in sections.distortions(records)],
        "heat": {stage: sections.panels(players(stage)[1], players(stage)[0], stage) for stage in MAXIMUM},
    }


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
            stage_scores={},
            decision_by_study_range=(),
            models_open=True,
            world=None,
            source=Path(scores).name,
            count=len(table.score),
            distortions=_distortions(Path(scores)),
            finding=models_finding(table),
        ),
    )
    return target


def _distortions(scores: Path) -> str:
    """Whose distortions annotated scores are of, as their file says; "" where it does not, or is a folder."""
    return str(metadata(read_schema(scores, ())).get("distortions", "")) if scores.is_file() else ""


def write_attribution_page(findings: Findings, source: str, target: Path) -> Path:
    """Write a page with the shares of losses in the run called `source`; returns its path.

    Raises InfrastructureError if it cannot be written.
    """
    page = _environment().get_template("attribution.html.j2")
    _write(
        target,
        page.render(
            findings=findings, finding=finding(findings), unseeing=unseeing_sentence(findings.unseeing), source=source
        ),
    )
    return target


def variances(records: Sequence[TrialRecord]) -> dict[str, Components]:
    """The variance components of each value that scatters."""
    found = {name: components(records, value) for name, value in VALUES.items()}
    return {name: parts for name, parts in found.items() if parts is not None and parts.total > 0.0}


def _mean_floors(chance: Mapping[str, Mapping[str, floors.Floor]], agents: Iterable[str]) -> dict[str, float]:
    """Stage to the mean floor of these agents, of the two stages whose floor is the output for another scene."""
    found = {
        stage: mean(chance[agent][stage].floor for agent in agents if agent in chance)
        for stage in ("cognition", "decision")
    }
    return {stage: floor for stage, floor in found.items() if floor is not None}


def _write(target: Path, page: str) -> None:
    write_file(target, page.encode("utf-8", "replace"))


@cache
def _environment() -> jinja2.Environment:
    return environment(
        "merton.study",
        figures=figures,
        threshold_words=thresholds.words,
        left_out_sentences=left_out_sentences,
        rise_words=thresholds.rise_words,
        places=places,
        METRICS=METRICS,
        MAXIMUM=MAXIMUM,
        TITLES=TITLES,
        GROUPS_SHOWN=GROUPS_SHOWN,
        BLIND_WORDS=blindness.WORDS,
        CARDS_OPEN=CARDS_OPEN,
        DIMENSION_LABELS=sections.DIMENSION_LABELS,
    )


def _by_difficulty(row: CaseRow) -> tuple[float, str]:
    """Hardest first."""
    return -sections.rating(row.standing), row.id


def _experiment_text(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace")[:200_000].splitlines()
    except OSError:
        return ""
    return "\n".join(printable(line, 400) for line in lines)
