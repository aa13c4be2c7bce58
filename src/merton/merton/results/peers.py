"""Results as other programs write them, one JSON file each or a folder of them: lm-eval, mteb and Inspect.

lm-eval (EleutherAI, 0.4): `results_*.json` with the metrics of each task, `model_name` and `higher_is_better`. mteb: a
file for each task with `task_name` and `scores`, and the model in `model_meta.json` beside it. Inspect: a log in JSON
with `eval`, `samples` and the scores of each.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.results.matrix_table import Cell, MatrixTable, number_in_cell, stored_name
from merton.results.records import AgentRecord
from merton.results.tables import file_bytes, utf8_text, without_nan
from merton.results.text import one_line

_INSPECT = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What Inspect takes its letters for: correct, partial, incorrect, no answer."""
_META = "model_meta.json"


def read_results(path: Path) -> MatrixTable:
    """The scores in a file of one of these programs, or in all of a folder and the folders below it.

    A case is a task of lm-eval and mteb (beside its split, where mteb has scores on several), a sample of Inspect
    (beside its scorer, where there are several). Of a task's metrics in lm-eval the first counts; a group of tasks, and
    a metric that is better when it is lower, do not. Inspect's epochs are averaged.

    Raises:
        InputError: no such results, two scores of a model on a case, or a nested score; with the file.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cells: dict[tuple[str, str], Cell] = {}
    remarks: list[str] = []
    for file in files:
        if file.name == _META:
            continue
        content = _object(file)
        for agent, case, score in _scores(file, content, remarks):
            key = stored_name(f"agent ({file.name})", agent), stored_name(f"case ({file.name})", case)
            if key in cells:
                raise InputError(
                    f"{file}: agent {agent!r} has a score of {one_line(case)!r} in {cells[key][3]} already"
                )
            cells[key] = (*key, score, str(file))
    if not cells:
        raise InputError(f"{path} holds no results of lm-eval, mteb or Inspect")
    agents = tuple(AgentRecord(agent) for agent in dict.fromkeys(agent for agent, _ in cells))
    cases = tuple(dict.fromkeys(case for _, case in cells))
    return MatrixTable(agents, cases, tuple(cells.values()), tuple(dict.fromkeys(remarks)))


def _scores(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[tuple[str, str, Any]]:
    if isinstance(content.get("results"), dict) and ("model_name" in content or "higher_is_better" in content):
        return _of_lm_eval(file, content, remarks)
    if isinstance(content.get("scores"), dict) and "task_name" in content:
        return _of_mteb(file, content)
    if isinstance(content.get("eval"), dict) and "samples" in content:
        return _of_inspect(file, content)
    raise InputError(
        f"{file} is none of: results_*.json of lm-eval, a task's results of mteb, a log of Inspect in JSON; other "
        "programs' scores can be imported as a table with the columns model, task and score"
    )


def _of_lm_eval(file: Path, content: Mapping[str, Any], remarks: list[str]) -> Iterator[tuple[str, str, Any]]:
    agent = _text(file, content, "model_name")
    groups, better = (content.get(name) or {} for name in ("group_subtasks", "higher_is_better"))
    for task, values in content["results"].items():
        if isinstance(groups, dict) and groups.get(task):
            remarks.append(f"{task} sums up its tasks and is left out.")
            continue
        metrics = [
            name
            for name, value in (values if isinstance(values, dict) else {}).items()
            if name != "alias" and "_stderr" not in name and number_in_cell(value, percent=False) is not None
        ]
        directions = better.get(task) if isinstance(better, dict) else None
        directions = directions if isinstance(directions, dict) else {}
        usable = [name for name in metrics if directions.get(name.partition(",")[0], True) is not False]
        unused = [name for name in metrics if name not in usable[:1]]
        if unused:
            remarks.append(f"{task} is scored by {usable[0] if usable else 'nothing'}; left out: {', '.join(unused)}.")
        if usable:
            yield agent, task, values[usable[0]]


def _of_mteb(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    meta = file.with_name(_META)
    if not meta.is_file():
        raise InputError(f"{file} does not name its model, and there is no {_META} beside it")
    about = _object(meta)
    agent, task = _text(meta, about, "name" if about.get("name") else "model_name"), _text(file, content, "task_name")
    means = {}
    for split, subsets in content["scores"].items():
        scores = (
            [one.get("main_score") for one in subsets if isinstance(one, dict)] if isinstance(subsets, list) else []
        )
        known = [number for number in (number_in_cell(score, percent=False) for score in scores) if number is not None]
        if known and len(known) == len(scores):
            means[split] = sum(known) / len(known)
    for split, mean in means.items():
        yield agent, task if len(means) == 1 else f"{task}/{split}", mean


def _of_inspect(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    about = content["eval"]
    agent, task = _text(file, about, "model"), _text(file, about, "task")
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in content["samples"] if isinstance(content["samples"], list) else []:
        scores = sample.get("scores") if isinstance(sample, dict) else None
        for scorer, score in (scores if isinstance(scores, dict) else {}).items():
            value = score.get("value") if isinstance(score, dict) else score
            if isinstance(value, dict | list):
                raise InputError(
                    f"{file}: the scorer {one_line(scorer)!r} gives several values a sample, not one score"
                )
            number = _INSPECT.get(value) if isinstance(value, str) else None
            number = number_in_cell(value, percent=False) if number is None else number
            if number is not None:
                found[f"{task}/{one_line(sample.get('id'))}", scorer].append(number)
    several = len({scorer for _, scorer in found}) > 1
    for (case, scorer), values in found.items():
        yield agent, f"{case}/{scorer}" if several else case, sum(values) / len(values)


def _object(file: Path) -> dict[str, Any]:
    try:
        found = without_nan(json.loads(utf8_text(str(file), file_bytes(file))))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no JSON: {one_line(error, 200)}") from None
    if not isinstance(found, dict):
        raise InputError(f"{file} is no JSON object")
    return found


def _text(file: Path, content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{file} has no text under {key!r}")
    return value.strip()
