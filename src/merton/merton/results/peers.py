"""Results as other programs write them, one JSON file each or a folder of them: lm-eval, mteb and Inspect.

lm-eval (EleutherAI, 0.4): `results_*.json` with the metrics of each task, `model_name` and `higher_is_better`. mteb: a
file for each task with `task_name` and `scores`, and the model in `model_meta.json` beside it. Inspect: a log in JSON
with `eval`, `samples` and the scores of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.results.checking import MAX_NAME
from merton.results.matrix_table import Cell, MatrixTable, number_in_cell, stored_name
from merton.results.records import AgentRecord
from merton.results.tables import json_object
from merton.results.text import one_line

_INSPECT = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Meaning of Inspect's letters: correct, partial, incorrect, no answer."""
_WORDS = {"yes": 1.0, "no": 0.0}
"""In any letters, as Inspect's own `value_to_float` reads them, beside true and false."""
_BETTER_HIGHER = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "accuracy", "exact_match", "em", "f1")
"""Metrics of lm-eval that are better when higher, also where a file does not say so."""
_META = "model_meta.json"


def read_results(path: Path) -> MatrixTable:
    """The scores in a file of one of these programs, or in all of a folder and the folders below it.

    A case is a task of lm-eval and mteb (beside its split, where mteb has scores on several), a sample of Inspect
    (beside its scorer, where there are several). Of a task's metrics in lm-eval the first that is better when it is
    higher counts, and no other in its place where it has no value; a group of tasks does not. Inspect's epochs are
    averaged.

    Raises:
        InputError: no such results, two scores of a model on a case, a nested score, or a sample without an id; with
            the file.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cells: dict[tuple[str, str], Cell] = {}
    remarks: list[str] = []
    for file in files:
        if file.name == _META:
            continue
        content = json_object(file)
        for agent, case, score, where in _scores(file, content, remarks):
            key = stored_name(f"agent ({file.name})", agent), stored_name(f"case ({file.name})", case)
            if key in cells:
                raise InputError(
                    f"{file}: agent {agent!r} has a score of {one_line(case)!r} in {cells[key][3]} already"
                )
            cells[key] = (*key, score, where)
    if not cells:
        why = f": {one_line(remarks[0], 300)}" if remarks else ""
        raise InputError(f"{path} holds no results of lm-eval, mteb or Inspect that are scores{why}")
    agents = tuple(AgentRecord(agent) for agent in dict.fromkeys(agent for agent, _ in cells))
    cases = tuple(dict.fromkeys(case for _, case in cells))
    return MatrixTable(agents, cases, tuple(cells.values()), tuple(dict.fromkeys(remarks)))


def _scores(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[Cell]:
    if isinstance(content.get("results"), dict) and ("model_name" in content or "higher_is_better" in content):
        return _of_lm_eval(file, content, remarks)
    if isinstance(content.get("scores"), dict) and "task_name" in content:
        return _of_mteb(file, content, remarks)
    if isinstance(content.get("eval"), dict) and "samples" in content:
        return _of_inspect(file, content, remarks)
    raise InputError(
        f"{file} is none of: results_*.json of lm-eval, a task's results of mteb, a log of Inspect in JSON; other "
        "programs' scores can be imported as a table with the columns model, task and score"
    )


def _of_lm_eval(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[Cell]:
    agent = _text(file, content, "model_name")
    groups, better = (content.get(name) or {} for name in ("group_subtasks", "higher_is_better"))
    for task, values in content["results"].items():
        if isinstance(groups, dict) and groups.get(task):
            remarks.append(f"{task} sums up its tasks and is left out.")
            continue
        # beside its metrics, "NAME,FILTER", a task may have its name, its alias and the number of its questions
        metrics = [
            name
            for name in (values if isinstance(values, dict) else ())
            if "," in name and "_stderr" not in name.partition(",")[0]
        ]
        directions = better.get(task) if isinstance(better, dict) else None
        usable = [name for name in metrics if _better_higher(name, directions if isinstance(directions, dict) else {})]
        scored = usable[:1] if usable and number_in_cell(values[usable[0]], percent=False) is not None else []
        unused = [name for name in metrics if name not in usable[:1]]
        if unused or (usable and not scored):
            remarks.append(
                f"{task} {_scored_by(usable, bool(scored))}{'; left out: ' if unused else ''}{', '.join(unused)}."
            )
        for name in scored:
            yield agent, task, values[name], f"{file}, task {one_line(task)}, metric {one_line(name)}"


def _better_higher(metric: str, directions: Mapping[str, Any]) -> bool:
    """Whether a metric of lm-eval is known to be better when it is higher."""
    name = metric.partition(",")[0]
    said = directions.get(name)
    return said if isinstance(said, bool) else name in _BETTER_HIGHER


def _scored_by(usable: list[str], has_value: bool) -> str:
    if not usable:
        return "is scored by nothing that is known to be better when it is higher"
    return f"is scored by {usable[0]}{'' if has_value else ', which has no value, so it has no score'}"


def _of_mteb(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[Cell]:
    meta = file.with_name(_META)
    if not meta.is_file():
        raise InputError(f"{file} does not name its model, and there is no {_META} beside it")
    about = json_object(meta)
    agent, task = _text(meta, about, "name" if about.get("name") else "model_name"), _text(file, content, "task_name")
    # the splits that a file names decide, scored or not, so that a case has one name for all models
    several = len(content["scores"]) > 1
    for split, subsets in content["scores"].items():
        case = f"{task}/{split}" if several else task
        scores = (
            [one.get("main_score") for one in subsets if isinstance(one, dict)] if isinstance(subsets, list) else []
        )
        known = [number for number in (number_in_cell(score, percent=False) for score in scores) if number is not None]
        if known and len(known) == len(scores):
            yield agent, case, sum(known) / len(known), f"{file}, split {one_line(split)}"
        else:
            remarks.append(f"{one_line(case)} of {one_line(agent)} is left out: not all of its subsets have a score.")


def _of_inspect(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[Cell]:
    about = content["eval"]
    agent, task = _text(file, about, "model"), _text(file, about, "task")
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    scorers: set[str] = set()
    unread: list[Any] = []
    for number, sample in enumerate(content["samples"] if isinstance(content["samples"], list) else [], 1):
        scores = sample.get("scores") if isinstance(sample, dict) else None
        for scorer, score in (scores if isinstance(scores, dict) else {}).items():
            scorers.add(scorer)
            value = score.get("value") if isinstance(score, dict) else score
            if isinstance(value, dict | list):
                raise InputError(
                    f"{file}: the scorer {one_line(scorer)!r} gives several values a sample, not one score"
                )
            read = _value_of_inspect(value)
            if read is None:
                unread.append(value)
            else:
                found[f"{task}/{_sample_id(f'{file}: sample {number}', sample.get('id'))}", scorer].append(read)
    if unread:
        shown = next((one_line(value, 40) for value in unread if value is not None), "")
        remarks.append(
            f"{one_line(task)} of {one_line(agent)}: {len(unread)} value{'s are' if len(unread) > 1 else ' is'} left "
            f"out as no score{f', such as {shown!r}' if shown else ''}."
        )
    # the scorers that a file names decide, scored or not, so that a case has one name for all models
    for (case, scorer), values in found.items():
        yield agent, f"{case}/{scorer}" if len(scorers) > 1 else case, sum(values) / len(values), str(file)


def _value_of_inspect(value: Any) -> float | None:
    """The score of a value of Inspect, as its `value_to_float`; None for another value."""
    if isinstance(value, str):
        known = _INSPECT.get(value, _WORDS.get(value.strip().lower()))
        if known is not None:
            return known
    return number_in_cell(value, percent=False)


def _sample_id(where: str, value: Any) -> str:
    """The id of a sample, whole; raises InputError if it has none, or one that is too long for a name."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text:
        raise InputError(f"{where} has a score and no id, a text or a whole number")
    if len(text) > MAX_NAME:
        raise InputError(f"{where} has an id of {len(text)} characters; at most {MAX_NAME} are possible")
    return text


def _text(file: Path, content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{file} has no text under {key!r}")
    return value.strip()
