"""Score by chance: a model's output for one scene, scored against its output for another.

The floor of `merton.study.floors`, for the images of a dataset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merton.cognition.score import score_batch as cognition_scores
from merton.cognition.text import CIDER_MAXIMUM, Cider
from merton.decision.score import score_batch as decision_scores
from merton.results.parquet import require_pyarrow
from merton.seeding import generator
from merton.study.outputs import DIMENSIONS
from merton.world.action import ActionChunk

PARTNERS = 4
"""Other references that each is compared with. Ours."""

Output = dict[str, Any]


def chances(annotations: Path, scene_of: Mapping[str, str], tasks: int) -> dict[str, dict[str, float]]:
    """Model to value to its score by chance, a sum over so many tasks; models without two scenes are left out.

    Ours: outputs for the undistorted images of two scenes are compared where their tasks begin with the same verb,
    with partners drawn by a seed of model and verb.

    Args:
        annotations: the file annotations.parquet.
        scene_of: reference to its scene; other references are passed over.
        tasks: of an image.
    """
    arrow = require_pyarrow()
    columns = ["model", "reference", "task", "answer", "deltas", "step_s", "frame"]
    table = arrow.parquet.read_table(annotations, columns=columns, filters=[("level", "=", 0)], partitioning=None)
    by_model: dict[str, list[Output]] = {}
    for row in table.sort_by([(name, "ascending") for name in columns[:3]]).to_pylist():
        if row["reference"] in scene_of and (row["answer"] is not None or row["deltas"] is not None):
            by_model.setdefault(row["model"], []).append(row)
    found = {}
    for model, outputs in by_model.items():
        pairs = _pairs(model, outputs, scene_of)
        if pairs:
            scores = _of_chunks(pairs) if outputs[0]["answer"] is None else _of_answers(pairs, outputs)
            found[model] = {name: tasks * float(np.mean(values)) for name, values in scores.items() if len(values)}
    return found


def _pairs(model: str, outputs: Sequence[Output], scene_of: Mapping[str, str]) -> list[tuple[Output, Output]]:
    """Outputs for different scenes whose tasks have the same verb."""
    by_verb: dict[str, list[Output]] = {}
    for output in outputs:
        by_verb.setdefault(output["task"].split()[0].lower(), []).append(output)
    pairs = []
    for verb, mine in sorted(by_verb.items()):
        draw = generator("chance", model, verb)
        for _ in range(PARTNERS):
            partners = draw.permutation(len(mine)).tolist()
            pairs += [(one, mine[other]) for one, other in zip(mine, partners, strict=True)]
    return [(one, other) for one, other in pairs if scene_of[one["reference"]] != scene_of[other["reference"]]]


def _of_answers(pairs: Sequence[tuple[Output, Output]], outputs: Sequence[Output]) -> dict[str, Any]:
    cider = Cider([output["answer"] for output in outputs])
    scores = cognition_scores([one["answer"] for one, _ in pairs], [other["answer"] for _, other in pairs], cider)
    values = {**vars(scores), "cider": scores.cider / CIDER_MAXIMUM, "cognition": scores.total}
    return {name: values[name][~np.isnan(values[name])] for name in ("cognition", *DIMENSIONS["cognition"])}


def _of_chunks(pairs: Sequence[tuple[Output, Output]]) -> dict[str, Any]:
    alike = [(_chunk(one), _chunk(other)) for one, other in pairs if one["frame"] == other["frame"]]
    scores = decision_scores([one for one, _ in alike], [other for _, other in alike])
    return {"decision": scores.total, **{name: getattr(scores, name) for name in DIMENSIONS["decision"]}}


def _chunk(output: Output) -> ActionChunk:
    return ActionChunk(np.array(output["deltas"], np.float64).reshape(-1, 7), output["step_s"], output["frame"])
