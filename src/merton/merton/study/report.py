"""One self-contained HTML page about a run: scores, curves, heat maps, what single trials saw and did, ratings, methods."""

from __future__ import annotations

import base64
import difflib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from merton.errors import InfrastructureError, InputError
from merton.leaderboard.board import MISSING, Board, Row, build, formatted, mean, printable
from merton.rating.agi_elo import Ratings, matches, rate
from merton.rating.outlook import gap, predicted_score
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton.study import figures

MAXIMUM = {"cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Score name to its maximum, in the order of the stages."""

PICTURE_BUDGET = 9_000_000
"""Bytes of embedded pictures after which further gallery cards go without, so that the page stays below 12 MB."""

CASES_SHOWN = 10
FRAME_LIMIT = 1_500_000
JSON_LIMIT = 8_000_000
OUTCOME_MARKS = {
    Outcome.SUCCESS: ("✓", "success"),
    Outcome.FAILURE: ("✕", "failure"),
    Outcome.EMERGENCY_STOP: ("■", "emergency stop"),
    Outcome.INVALID_ACTION: ("!", "invalid action"),
    Outcome.INFRASTRUCTURE: ("○", "infrastructure fault"),
}
_JPEG = b"\xff\xd8\xff"


@dataclass(frozen=True)
class Panel:
    """One agent's heat map: rows of (distortion, cells of levels 1..5); a cell is a Point or None."""

    agent: str
    reference: float | None
    rows: tuple[tuple[str, tuple[figures.Point | None, ...]], ...]


@dataclass(frozen=True)
class Card:
    """One trial of the gallery, ready to be shown; pictures are data URIs, or None if not kept."""

    record: TrialRecord
    detail: Mapping[str, Any]
    reference_picture: str | None
    distorted_picture: str | None
    camera: str
    reference_answer: str
    distorted_answer: Markup
    top: Markup
    side: Markup


def write_report(run_directory: Path | str) -> Path:
    """Write `report.html` into a run's directory and return its path.

    Reads run.json, experiment.yaml, results.sqlite and, for the gallery, trials/<id>/; what a trial did not keep is shown as
    missing. The page needs no other file and makes no request.

    Raises:
        InputError: there is no such run, or its run.json or results.sqlite is missing or unreadable.
        InfrastructureError: the page cannot be written.
    """
    run = Path(run_directory)
    if not run.is_dir():
        raise InputError(f"there is no run at {run}")
    facts = _json_file(run / "run.json")
    if facts is None:
        raise InputError(f"{run / 'run.json'} is missing or is not a JSON object")
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = [record for experiment in store.experiments() for record in store.records(experiment)]
    page = render(run, facts, records)
    target, draft = run / "report.html", run / ".report.html.part"
    try:
        draft.write_text(page, encoding="utf-8", errors="replace")
        os.replace(draft, target)
    except OSError as error:
        raise InfrastructureError(f"cannot write {target}: {error.strerror}") from error
    return target


def render(run: Path, facts: Mapping[str, Any], records: Sequence[TrialRecord]) -> str:
    """The page as text; `facts` is run.json, `run` the directory that holds trials/ and experiment.yaml."""
    seed = facts.get("seed")
    ratings = rate(matches(records), seed if isinstance(seed, int) else 0)
    board = build(records, ratings)
    agents = [row.agent for row in board.rows]
    cards = _gallery(run, records, board)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("merton.study"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(shown=_shown, number=_number, percent=_percent, words=_words)
    environment.globals.update(figures=figures, MISSING=MISSING, MAXIMUM=MAXIMUM, marks=OUTCOME_MARKS)
    return environment.get_template("report.html.j2").render(
        facts=facts,
        when=_when(facts.get("created")),
        headline=headline(board, records, ratings),
        records=records,
        board=board,
        domain=figures.rating_domain(ratings.agents.values()),
        ratings=ratings,
        legend=list(enumerate(agents)),
        overview={
            stage: [_series(agent, index, records, stage) for index, agent in enumerate(agents)] for stage in MAXIMUM
        },
        curves=[
            (
                distortion,
                [_series(agent, index, records, "execution", distortion) for index, agent in enumerate(agents)],
            )
            for distortion in _distortions(records)
        ],
        heat={stage: _panels(records, agents, stage) for stage in MAXIMUM},
        cards=cards,
        troubles=_troubles(records),
        hardest=sorted(ratings.cases.items(), key=lambda item: (-item[1].mean, item[0]))[:CASES_SHOWN],
        easiest=sorted(ratings.cases.items(), key=lambda item: (item[1].mean, item[0]))[:CASES_SHOWN],
        case_domain=figures.rating_domain(ratings.cases.values()),
        case_score={case: mean(score for _, score in group) for case, group in _grouped(matches(records)).items()},
        outlook=_outlook(ratings),
        provenance=list(_flat(facts)),
        experiment=_experiment_text(run / "experiment.yaml"),
    )


def headline(board: Board, records: Sequence[TrialRecord], ratings: Ratings) -> str:
    """One sentence: how large the run is, who lost most under distortion, and which distortion is hardest."""
    agents, trials = len(board.rows), len(records)
    size = f"{agents} agent{'s' * (agents != 1)}, {trials} trial{'s' * (trials != 1)}"
    sensitive = most_sensitive(board)
    if not sensitive:
        return f"{size}: no agent has lost execution score under distortion."
    kept = f"{printable(sensitive[0].agent, 40)} keeps {_percent(sensitive[0].kept)}\u00a0% of its execution score under distortion"
    hardest = _hardest(records, ratings)
    return f"{size}: {kept}" + (f"; hardest: {hardest}." if hardest else ".")


def most_sensitive(board: Board) -> list[Row]:
    """The agents that lose more than one point of execution under distortion, the greatest loss first."""
    losses = [(row.execution_reference or 0.0) - (row.execution_distorted or 0.0) for row in board.rows]
    known = [(loss, row) for loss, row in zip(losses, board.rows) if row.kept is not None and loss > 1.0]
    return [row for _, row in sorted(known, key=lambda item: (-item[0], item[1].agent))]


def _hardest(records: Sequence[TrialRecord], ratings: Ratings) -> str:
    """The distortion and level with the highest mean case rating, such as "max_darken 5"; "" if none is rated."""
    cases = {record.case for record in records if not record.case.is_reference and record.case.id in ratings.cases}
    by_kind: dict[tuple[str, int], list[float]] = {}
    for case in cases:
        by_kind.setdefault((case.distortion, case.level), []).append(ratings.cases[case.id].mean)
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
        if record.agent == agent and score is not None:
            if distortion is None or record.case.is_reference or record.case.distortion == distortion:
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


def _gallery(run: Path, records: Sequence[TrialRecord], board: Board) -> list[Card]:
    """A card for every distortion, the most harmful one first: its highest level, failures of sensitive agents preferred."""
    sensitive = [row.agent for row in most_sensitive(board)] or [row.agent for row in board.rows]
    usable = [
        record for record in records if record.agent in sensitive and record.outcome is not Outcome.INFRASTRUCTURE
    ]
    chosen: list[tuple[float, TrialRecord, Mapping[str, Any]]] = []
    for distortion in _distortions(usable):
        candidates = [record for record in usable if record.case.distortion == distortion]
        candidates.sort(
            key=lambda record: (
                -record.case.level,
                record.outcome is Outcome.SUCCESS,
                sensitive.index(record.agent),
                record.execution if record.execution is not None else 100.0,
                record.id,
            )
        )
        harm = mean(record.execution for record in candidates)
        for record in candidates[:8]:
            detail = _json_file(_trial_file(run, record, "trial.json"))
            if detail is not None:
                chosen.append((100.0 if harm is None else harm, record, detail))
                break
    chosen.sort(key=lambda item: (item[0], item[1].id))
    cards, budget = [], PICTURE_BUDGET
    for _, record, detail in chosen:
        reference, distorted = _path(detail, "reference_path"), _path(detail, "path")
        window = figures.window_of((reference, distorted))
        frame = _first_frame(detail)
        pictures = [_picture(run, record, frame.get(kind)) for kind in ("reference", "distorted")]
        budget -= sum(len(picture) for picture in pictures if picture)
        if budget < 0:
            pictures = [None, None]
        answers = [_text(_nested(detail, "answers", kind)) for kind in ("reference", "distorted")]
        cards.append(
            Card(
                record,
                detail,
                pictures[0],
                pictures[1],
                printable(str(frame.get("camera", "camera")), 20),
                answers[0],
                _marked(*answers),
                figures.trajectory(reference, distorted, "top", window),
                figures.trajectory(reference, distorted, "side", window),
            )
        )
    return cards


def _troubles(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Every trial that did not succeed, the rarer and graver outcomes before plain failures."""
    order = [Outcome.EMERGENCY_STOP, Outcome.INVALID_ACTION, Outcome.INFRASTRUCTURE, Outcome.FAILURE]
    found = [record for record in records if record.outcome is not Outcome.SUCCESS]
    return sorted(found, key=lambda record: (order.index(record.outcome), record.id))


def _first_frame(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """The earliest frame, of the top camera if there is one: it looks the way the trajectory is drawn."""
    frames = detail.get("frames")
    known = [item for item in frames if isinstance(item, dict)] if isinstance(frames, list) else []
    return min(known, key=lambda item: (item.get("camera") != "top", str(item.get("step")).zfill(9)), default={})


def _trial_file(run: Path, record: TrialRecord, name: str) -> Path | None:
    """A file of a trial, or None if it is not a plain file that lies directly in the trial's own directory."""
    trials = (run / "trials").resolve()
    path = (trials / record.id / name).resolve()
    return path if path.parent.parent == trials and path.parent.name == record.id and path.is_file() else None


def _json_file(path: Path | None) -> dict[str, Any] | None:
    try:
        if path is None or path.stat().st_size > JSON_LIMIT:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _picture(run: Path, record: TrialRecord, name: object) -> str | None:
    path = _trial_file(run, record, name) if isinstance(name, str) and name else None
    if path is None or path.stat().st_size > FRAME_LIMIT:
        return None
    content = path.read_bytes()
    return f"data:image/jpeg;base64,{base64.b64encode(content).decode()}" if content.startswith(_JPEG) else None


def _path(detail: Mapping[str, Any], key: str) -> figures.Path3:
    """A path of a trial, thinned to at most 200 points and kept within reach of any arm; empty if it is not one."""
    try:
        points = np.asarray(detail.get(key) or [], dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros((0, 3))
    if points.ndim != 2 or points.shape[1] != 3:
        return np.zeros((0, 3))
    points = np.clip(points[np.isfinite(points).all(axis=1)], -2.0, 2.0)
    if len(points) <= 200:
        return points
    return points[np.linspace(0, len(points) - 1, 200).round().astype(int)]


def _marked(reference: str, distorted: str) -> Markup:
    """The distorted answer with the words that the reference answer lacks in <mark>."""
    ours, theirs = reference.split(), distorted.split()
    parts = []
    for kind, _, _, start, end in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        words = " ".join(theirs[start:end])
        if words:
            parts.append(Markup("{}" if kind == "equal" else "<mark>{}</mark>").format(words))
    return Markup(" ").join(parts)


def _outlook(ratings: Ratings) -> list[tuple[str, float, list[float]]]:
    """Agent, predicted score on the hardest case, and gaps to scoring 50, 90 and 99 % on it."""
    if not ratings.cases:
        return []
    hardest = max(rating.mean for rating in ratings.cases.values())
    rows = sorted(ratings.agents.items(), key=lambda item: (-item[1].mean, item[0]))
    return [
        (agent, predicted_score(rating.mean, hardest), [gap(rating.mean, hardest, p) for p in (0.5, 0.9, 0.99)])
        for agent, rating in rows
    ]


def _grouped(played: Iterable[tuple[str, str, float]]) -> dict[str, list[tuple[str, float]]]:
    groups: dict[str, list[tuple[str, float]]] = {}
    for agent, case, score in played:
        groups.setdefault(case, []).append((agent, score))
    return groups


def _nested(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: object) -> str:
    return _shown(value, 600) if isinstance(value, str) else ""


def _shown(value: object, limit: int = 80) -> str:
    """Text of any origin on one line, without control or direction characters, cut to `limit`."""
    return printable(" ".join(str(value).split()), limit)


def _number(value: object, pattern: str = "{:.2f}") -> str:
    """A number in the pattern; a dash for anything that is not one, such as a stray text in trial.json."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
    return formatted(float(value) if is_number else None, pattern)  # type: ignore[arg-type]


def _percent(value: float | None, maximum: float = 1.0) -> str:
    return MISSING if value is None else f"{100.0 * value / maximum:.0f}"


def _words(name: str) -> str:
    """A distortion's name for people: "gaussian_blur" to "gaussian blur"."""
    return _shown(name, 40).replace("_", " ")


def _when(created: object) -> str:
    """An ISO time for people; anything else as it is."""
    try:
        moment = datetime.fromisoformat(str(created).replace("Z", "+00:00"))
    except ValueError:
        return _shown(created) if created else "at an unknown time"
    zone = f" {moment.tzname()}" if moment.tzinfo else ""
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} · ")
        else:
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            yield _shown(f"{prefix}{key}", 80), _shown(text, 300)


def _experiment_text(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace")[:200_000].splitlines()
    except OSError:
        return ""
    return "\n".join(printable(line, 400) for line in lines)
