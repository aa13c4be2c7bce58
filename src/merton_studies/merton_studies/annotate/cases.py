"""The gallery of a dataset's study: images whose level and score disagree, with pictures and outputs of a model.

As in Appendix H of Embodied-IQA: level 5 with a score of 4.52, level 1 with 2.98.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from markupsafe import Markup

from merton.errors import InputError
from merton.pages.words import marked
from merton.perception.dataset import layout
from merton.perception.images import encode_image, read_image
from merton.results.parquet import require_pyarrow
from merton.results.text import one_line
from merton.world.observation import Image
from merton_studies.annotate.tables import ANNOTATIONS
from merton_studies.opinions.dataset import Case, instructive
from merton_studies.opinions.opinion import Opinions

PICTURE_SIZE = (240, 180)
"""Within which pictures are shown, width and height in px."""
JPEG_QUALITY = 80
OUTPUTS = 3
"""Tasks whose outputs are shown: those that lost most."""

Row = dict[str, Any]


def cases(opinions: Opinions, dataset: Path, folders: Sequence[Path] = ()) -> list[Case]:
    """The cases of every stage that the opinions have.

    Args:
        opinions: of the dataset.
        dataset: its folder; a picture that is missing there is shown as missing.
        folders: of annotations, for what the subjects answered; without them only pictures and scores are shown.
    """
    files = _files(dataset)
    found = []
    for stage in opinions.stages:
        rows = [row for part in instructive(opinions, stage) for row in part]
        asked = _outputs(folders, stage, opinions, rows)
        for row in rows:
            reference, distortion = str(opinions.reference_id[row]), str(opinions.distortion[row])
            level = int(opinions.level[row])
            model, outputs = _told(asked, stage, (reference, distortion, level))
            found.append(
                Case(
                    stage,
                    reference,
                    distortion,
                    level,
                    float(opinions.value(stage)[row]),
                    (
                        thumbnail(files.get((reference, "reference", 0))),
                        thumbnail(files.get((reference, distortion, level))),
                    ),
                    outputs,
                    model,
                )
            )
    return found


def _files(dataset: Path) -> dict[tuple[str, str, int], Path]:
    """Image (reference, distortion, level) to its file."""
    parquet = require_pyarrow().parquet
    manifest = parquet.read_table(dataset / layout.MANIFEST, columns=["reference_id", "distortion", "level", "file"])
    references = parquet.read_table(dataset / layout.REFERENCE_TABLE, columns=["id", "file"])
    found = {(row["id"], "reference", 0): dataset / row["file"] for row in references.to_pylist()}
    for row in manifest.to_pylist():
        found[row["reference_id"], row["distortion"], row["level"]] = dataset / row["file"]
    return found


def thumbnail(file: Path | None) -> str | None:
    """A small copy of an image, within `PICTURE_SIZE`, as a data URI; None where there is none that can be read."""
    if file is None:
        return None
    try:
        return small_copy(read_image(file))
    except InputError:
        return None


def small_copy(image: Image) -> str:
    """A copy of an image (height, width, 3) uint8 RGB within `PICTURE_SIZE`, as a data URI."""
    height, width = image.shape[:2]
    scale = min(PICTURE_SIZE[0] / width, PICTURE_SIZE[1] / height, 1.0)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return "data:image/jpeg;base64," + base64.b64encode(encode_image(small, ".jpg", JPEG_QUALITY)).decode()


def _outputs(
    folders: Sequence[Path], stage: str, opinions: Opinions, rows: Sequence[int]
) -> dict[tuple[str, str, str, int, str], Row]:
    """Outputs of a stage's subjects for these images and their references, by (model, reference, type, level, task)."""
    subjects = opinions.about.get("subjects", {}).get(stage, [])
    references = sorted({str(opinions.reference_id[row]) for row in rows})
    found = {}
    for folder in folders:
        if not (folder / ANNOTATIONS).is_file():
            continue
        table = (
            require_pyarrow().parquet.read_table(
                folder / ANNOTATIONS,
                columns=["model", "reference", "distortion", "level", "task", "answer", "deltas", stage],
                filters=[("reference", "in", references), ("model", "in", subjects)],
                partitioning=None,
            )
            if subjects
            else None
        )
        for row in table.to_pylist() if table else ():
            found[row["model"], row["reference"], row["distortion"], row["level"], row["task"]] = row
    return found


def _told(
    asked: dict[tuple[str, str, str, int, str], Row], stage: str, image: tuple[str, str, int]
) -> tuple[str, tuple[tuple[str, str, str | Markup], ...]]:
    """The subject whose sum on the image is the median, and its outputs by task, the least alike first."""
    by_model: dict[str, list[Row]] = {}
    for (model, *shown, _), row in asked.items():
        if tuple(shown) == image and row[stage] is not None:
            by_model.setdefault(model, []).append(row)
    if not by_model:
        return "", ()
    order = sorted(by_model, key=lambda model: (sum(row[stage] for row in by_model[model]), model))
    model = order[len(order) // 2]
    mine = sorted(by_model[model], key=lambda row: (row[stage], row["task"]))[:OUTPUTS]
    told = []
    for row in mine:
        before = asked.get((model, image[0], "reference", 0, row["task"]))
        if before is not None:
            told.append((f"{one_line(row['task'], 120)} ({row[stage]:.2f})", *_pair(before, row)))
    return model, tuple(told)


def _pair(before: Row, after: Row) -> tuple[str, str | Markup]:
    """Answers or motions in words of one subject: for the reference, and for the distorted image."""
    if before["answer"] is not None:
        return before["answer"], marked(before["answer"], after["answer"] or "")
    return _motion(before["deltas"]), _motion(after["deltas"])


def _motion(deltas: Sequence[Sequence[float]] | None) -> str:
    """The first actions of a policy in words: how far the tool moves in all, and how the gripper ends."""
    if not deltas:
        return "no action"
    chunk = np.array(deltas, np.float64).reshape(-1, 7)
    x, y, z = (100.0 * chunk[:, :3].sum(axis=0)).round(1) + 0.0
    grip = "open" if chunk[-1, 6] > 0.5 else "closed"
    return f"{len(chunk)} steps, {x:g}, {y:g}, {z:g} cm along x, y, z; gripper {grip}"
