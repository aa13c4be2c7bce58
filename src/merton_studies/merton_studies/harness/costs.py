"""The measured cost of an evaluation."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from merton.processes import usable_cores
from merton_studies.harness.answerers import Answerer
from merton_studies.harness.logs import Logged

PARTS = ("infer_s", "score_s", "waited_s", "model_s", "prompts", "calls")


def cost_of(pieces: Mapping[str, Sequence[Mapping[str, Any]]], answerers: Sequence[Answerer]) -> dict[str, Any]:
    """Measured cost by answerer, and of all (A2Eval, Table 5): of the batches as they were run, on one core each.

    `infer_s` and `score_s` are times of the programs, `waited_s` is the part of the first in which they waited for
    answers, and `model_s` the time of these answers when they were made. `seconds` is what a run without a cache takes:
    programs and answers, one after the other; None for the predictions of a log, which do not say what they took.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for answerer in answerers:
        own = pieces[answerer.name]
        sums = {name: sum(piece[name] for piece in own) for name in PARTS}
        seconds = sums["infer_s"] - sums["waited_s"] + sums["model_s"] + sums["score_s"]
        by_name[answerer.name] = {
            "questions": sum(len(piece["rows"]) for piece in own),
            **sums,
            "seconds": None if isinstance(answerer, Logged) else seconds,
            "money": sums["calls"] * answerer.cost_per_1000 / 1000,
            "tokens": None,
        }
    hardware = {"machine": platform.machine(), "cores": os.cpu_count(), "usable_cores": usable_cores()}
    process_s = sum(one["infer_s"] + one["score_s"] for one in by_name.values())
    return {"answerers": by_name, "process_s": process_s, "hardware": hardware}
