"""The opinions of annotated models: one score per image of a dataset, from the scores of one or several annotations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.origin import read_origin
from merton.perception.dataset.tables import read_table
from merton.results.parquet import read_schema
from merton.results.text import one_line
from merton.study.outputs import DIMENSIONS
from merton_studies.annotate.chance import chances
from merton_studies.annotate.tables import ANNOTATIONS, SCORES
from merton_studies.opinions import opinion
from merton_studies.opinions.opinion import Images, Opinions, SubjectSums


@dataclass(frozen=True)
class Annotations:
    """The sums of every annotated model, and the distorted images of the dataset they were run on."""

    sums: SubjectSums
    images: Images


def read_annotations(folders: Sequence[Path], dataset: Path, domain: str | None = None) -> Annotations:
    """The scores in folders of `merton annotate`, each model in one of them, summed over tasks.

    Args:
        folders: of the annotations; or one file subjects.parquet that was made of such folders.
        dataset: the folder that they annotate.
        domain: "real" or "simulation": only images of references of this domain; all by default.

    Raises:
        InputError: a folder without scores, scores without those of the references, a score that is no number or
            there twice, no dataset, another dataset than the annotated one, or no image of the domain.
        MissingDependencyError: pyarrow is not installed.
    """
    layout.refuse_unfinished(dataset)
    is_file = len(folders) == 1 and folders[0].is_file()
    sums = opinion.read_subjects(folders[0]) if is_file else _sums(folders, dataset)
    sums = replace(sums, about={**sums.about, **read_origin(dataset).facts})
    images = opinion.read_images(dataset)
    there = set(zip(images.reference_id.tolist(), images.distortion.tolist(), images.level.tolist(), strict=True))
    annotated = zip(sums.reference_id.tolist(), sums.distortion.tolist(), sums.level.tolist(), strict=True)
    strange = next((one for one in annotated if one[2] > 0 and one not in there), None)
    if strange is not None:
        shown = f"{one_line(strange[0])} under {one_line(strange[1])} {strange[2]}"
        raise InputError(f"{folders[0]} has scores of {shown}, which is not in {dataset}: it is of another dataset")
    if domain is not None:
        domains = np.unique(images.domain).tolist()
        if domain not in domains:
            raise InputError(f"{dataset} has no images of the domain {one_line(domain)!r}, only: {', '.join(domains)}")
        images = images.where(images.domain == domain)
        sums = sums.where(np.isin(sums.reference_id, images.reference_id))
    if is_file:
        return Annotations(sums, images)
    scene_of = dict(zip(sums.reference_id.tolist(), sums.scene.tolist(), strict=True))
    by_chance: dict[str, dict[str, float]] = {}
    for folder in folders:
        if (folder / ANNOTATIONS).is_file():
            by_chance |= chances(folder / ANNOTATIONS, scene_of, sums.tasks)
    return Annotations(replace(sums, about={**sums.about, "chance": by_chance, "domain": domain or "all"}), images)


def read_judgements(
    places: Sequence[Path], dataset: Path, domain: str | None = None
) -> tuple[Opinions, SubjectSums | None]:
    """The mean opinions of a dataset's images, and the sums of their subjects where these are known.

    Args:
        places: as `read_annotations`; or one `opinions.parquet`, or one folder of `merton study import`.
        dataset, domain: as `read_annotations`.

    Raises as `read_annotations` does.
    """
    if len(places) == 1 and places[0].is_dir() and not (places[0] / SCORES).is_file():
        files = [places[0] / name for name in (opinion.SUBJECTS, opinion.OPINIONS)]
        places = [file for file in files if file.is_file()][:1] or places
    if len(places) > 1 or places[0].is_dir() or "model" in read_schema(places[0], ("reference_id",)).names:
        found = read_annotations(places, dataset, domain)
        return opinion.opinions(found.sums, found.images), found.sums
    opinions = opinion.read_opinions(places[0])
    if opinions.about.get("dataset", manifest := _manifest(dataset)) != manifest:
        raise InputError(f"{places[0]} is of another dataset than {dataset}: the hashes of the manifests differ")
    return (opinions if domain is None else opinions.where(opinions.domain == domain)), None


def _manifest(dataset: Path) -> str:
    return hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest()


def _sums(folders: Sequence[Path], dataset: Path) -> SubjectSums:
    """The sums of the models in folders that annotate the dataset; raises as `read_annotations` does."""
    for folder in folders:
        if not (folder / SCORES).is_file():
            raise InputError(f"{folder} holds no {SCORES}: it is no folder of a finished `merton annotate`")
    tasks = {row["id"]: len(row["tasks"]) for row in read_table(dataset / layout.REFERENCE_TABLE) if row.get("tasks")}
    sums = opinion.subject_sums([folder / SCORES for folder in folders], tasks)
    manifest = _manifest(dataset)
    if sums.about.get("dataset", manifest) != manifest:
        raise InputError(f"{folders[0]} annotates another dataset than {dataset}: the hashes of the manifests differ")
    if not (sums.level == 0).any():
        raise InputError(f"{folders[0]} has no scores of undistorted images: annotate the references too")
    return sums


def write_opinions(
    found: Annotations, out: Path, label: str = "mean", subjects: Sequence[str] | None = None
) -> Opinions:
    """Write `subjects.parquet` and `opinions.parquet` into a folder; returns the opinions.

    Raises as `study.opinion.opinions` does, and InfrastructureError if a file cannot be written.
    """
    opinions = opinion.opinions(found.sums, found.images, label, subjects)
    opinion.write_subjects(found.sums, out / opinion.SUBJECTS)
    opinion.write_opinions(opinions, out / opinion.OPINIONS)
    return opinions


def write_leave_one_out(found: Annotations, out: Path, label: str = "mean") -> list[str]:
    """Write, for every subject, `opinions_without_<subject>.parquet` and `opinions_of_<subject>.parquet`.

    Returns the names of the subjects. Raises InputError where no stage has two subjects.
    """
    stages = [stage for stage in DIMENSIONS if len(found.sums.subjects(stage)) > 1]
    if not stages:
        raise InputError("leaving one subject out needs at least two of a stage: annotate with more models")
    names = []
    for stage in stages:
        for name, others, own in opinion.leave_one_out(found.sums, found.images, stage, label):
            opinion.write_opinions(others, out / f"opinions_without_{name}.parquet")
            opinion.write_opinions(own, out / f"opinions_of_{name}.parquet")
            names.append(name)
    return names
