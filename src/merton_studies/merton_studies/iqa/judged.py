"""A dataset and the opinions of its images put together, on which metrics are trained and tested."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.origin import read_origin
from merton.perception.dataset.tables import read_table
from merton.perception.quality.pairs import ImagePair
from merton.results.parquet import read_columns, require_pyarrow
from merton.results.text import one_line
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.human import Key
from merton_studies.opinions.opinion import Opinions, SubjectSums, opinions, read_images, read_opinions, read_subjects
from merton_studies.opinions.whose import is_imported, whose

Floats = NDArray[np.float64]

ATTRIBUTES = ("luminance", "contrast", "chrominance", "blur", "spatial_information")


@dataclass(frozen=True)
class JudgedImages:
    """The images of a dataset that have opinions of a stage; all arrays are in the order of the opinions.

    Attributes:
        stage: "decision" or "cognition".
        opinions: (n,) images, each with a score of the stage.
        pairs: (n,) files, each with its reference.
        sha256: (n,) of the distorted images and their references, as the tables of the dataset name them.
        attributes: (n, 5) `ATTRIBUTES` of the distorted images; the blur as its logarithm.
        subjects: names of the stage's subjects; empty where only mean opinions are known.
        own: value to the subjects' own sums, (subjects, n).
        about: hashes of both tables, and what the opinions say of themselves.
        remarks: sentences that a user should read.
    """

    stage: str
    opinions: Opinions
    pairs: tuple[ImagePair, ...]
    sha256: tuple[str, ...]
    attributes: Floats
    subjects: tuple[str, ...]
    own: Mapping[str, Floats]
    about: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    @property
    def labels(self) -> Floats:
        """(n,) the mean opinions of the stage, 0..5 unless they are standardised."""
        return self.opinions.value(self.stage)

    @property
    def values(self) -> tuple[str, ...]:
        """The stage and its three dimensions."""
        return (self.stage, *DIMENSIONS[self.stage])

    @property
    def targets(self) -> dict[str, Floats]:
        """The mean opinions of each of `values`, (n,)."""
        return {name: self.opinions.value(name) for name in self.values}

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns by which `merton_studies.opinions.splits.split` divides, (n,) each."""
        return {name: getattr(self.opinions, name) for name in ("reference_id", "scene", "distortion", "level")}


def read_judged(dataset: Path, judgements: Path, stage: str) -> JudgedImages:
    """A dataset and the opinions of its images.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        judgements: `opinions.parquet`, or `subjects.parquet`, which tells of every subject too.
        stage: "decision" or "cognition".

    Raises:
        InputError: no such tables, opinions of another dataset, no opinions of the stage, or all of them equal.
        MissingDependencyError: pyarrow is not installed.
    """
    layout.refuse_unfinished(dataset)
    read_columns(judgements, ("reference_id", "distortion", "level"))
    of_subjects = "model" in require_pyarrow().parquet.read_schema(judgements).names
    sums = read_subjects(judgements) if of_subjects else None
    if sums is not None:
        _rows(dataset, _keys(sums.where(sums.level > 0)))
    found = opinions(sums, read_images(dataset)) if sums else read_opinions(judgements)
    if stage not in found.stages:
        raise InputError(
            f"{judgements} has no opinions of {stage}; it has those of: {', '.join(found.stages) or 'none'}"
        )
    facts = read_origin(dataset).facts
    found = replace(found.where(~np.isnan(found.value(stage))), about={**found.about, **facts})
    if np.ptp(found.value(stage)) == 0.0:
        raise InputError(f"{judgements}: {stage} is the same for all images, so no metric can predict it")
    rows = _rows(dataset, _keys(found))
    references = {row["id"]: row for row in read_table(dataset / layout.REFERENCE_TABLE)}
    of = [references[row["reference_id"]] for row in rows]
    attributes = np.array([[_number(row[name]) for name in ATTRIBUTES] for row in rows])
    attributes[:, ATTRIBUTES.index("blur")] = np.log1p(attributes[:, ATTRIBUTES.index("blur")])
    names, own = _own(sums, found, stage) if sums else ((), {})
    manifest = layout.sha256_of(dataset / layout.MANIFEST)
    return JudgedImages(
        stage,
        found,
        tuple(ImagePair(dataset / row["file"], dataset / ref["file"]) for row, ref in zip(rows, of, strict=True)),
        tuple(row["sha256"] + ref["sha256"] for row, ref in zip(rows, of, strict=True)),
        attributes,
        names,
        own,
        {
            "dataset": manifest,
            **facts,
            "judgements": layout.sha256_of(judgements),
            "opinions": dict(found.about),
        },
        _remarks(found, stage, manifest, judgements),
    )


def pairs_of(dataset: Path, keys: Sequence[Key]) -> tuple[ImagePair, ...]:
    """Files of images of a dataset, each with its reference.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        keys: reference, distortion and level of each.

    Raises:
        InputError: no finished dataset, or an image that it does not have.
    """
    layout.refuse_unfinished(dataset)
    references = {row["id"]: row["file"] for row in read_table(dataset / layout.REFERENCE_TABLE)}
    rows = _rows(dataset, keys)
    return tuple(ImagePair(dataset / row["file"], dataset / references[row["reference_id"]]) for row in rows)


def sha256_of(*parts: Any) -> str:
    """The hash of texts, numbers and arrays, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.tobytes() if isinstance(part, np.ndarray) else str(part).encode()
        digest.update(f"{type(part).__name__} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _remarks(found: Opinions, stage: str, manifest: str | None, judgements: Path) -> tuple[str, ...]:
    """Remarks on the opinions that a user should know before the numbers are read."""
    remarks = []
    if is_imported(found.about):
        remarks.append(f"{stage} stands for opinions of {whose(found.about, stage)}.")
    if found.about.get("dataset", manifest) != manifest:
        remarks.append(
            f"{judgements} was made of a dataset with another manifest: its images are found here by reference, type "
            "and level, and may differ in pixels"
        )
    return tuple(remarks)


def _keys(found: Opinions | SubjectSums) -> list[Key]:
    return list(zip(found.reference_id.tolist(), found.distortion.tolist(), found.level.tolist(), strict=True))


def _rows(dataset: Path, keys: Sequence[Key]) -> list[dict[str, Any]]:
    """The manifest's row of every image of the opinions."""
    by_key = {
        (row["reference_id"], row["distortion"], row["level"]): row for row in read_table(dataset / layout.MANIFEST)
    }
    rows = []
    for key in keys:
        if key not in by_key:
            raise InputError(
                f"the opinions are of another dataset: {key[1]} at level {key[2]} of {one_line(key[0])!r} is not in "
                f"{dataset}"
            )
        rows.append(by_key[key])
    return rows


def _own(sums: SubjectSums, found: Opinions, stage: str) -> tuple[tuple[str, ...], dict[str, Floats]]:
    """The subjects of a stage, and their sums on the images of the opinions."""
    place = {
        key: index
        for index, key in enumerate(
            zip(sums.reference_id.tolist(), sums.distortion.tolist(), sums.level.tolist(), strict=True)
        )
    }
    keys = zip(found.reference_id.tolist(), found.distortion.tolist(), found.level.tolist(), strict=True)
    images = [place[key] for key in keys]
    names = sums.subjects(stage)
    subjects = [sums.models.tolist().index(name) for name in names]
    values = (stage, *DIMENSIONS[stage])
    return tuple(names), {name: sums.values[name][np.ix_(subjects, images)] for name in values}


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
