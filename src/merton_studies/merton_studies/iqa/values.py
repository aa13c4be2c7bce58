"""Values of metrics on every image of a dataset, computed once and kept: in parallel, and resumed after a kill.

Each reference has a file below `metric_values/`, written whole, with the values of its copies; a metric that is asked
for later, or was changed since, is added to it. The table of all is made from these files in the order of the manifest.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import merton
from merton.errors import InfrastructureError, InputError, MertonError, describe_error
from merton.files import written_whole
from merton.perception.dataset import layout
from merton.perception.dataset.tables import read_table
from merton.perception.images import decode_image
from merton.perception.quality import METRICS, measure
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton.results.text import one_line
from merton.world.observation import Image

PARTS = "metric_values"
TABLE = "metric_values.parquet"

Key = tuple[str, str, int]
"""Reference, distortion and level of an image."""


@dataclass(frozen=True)
class MetricValues:
    """Values of metrics on the distorted images of a dataset, in the order of its manifest.

    Attributes:
        keys: (n,) images.
        values: of each metric (n,); NaN where it failed, infinite for the PSNR of a copy that equals its reference.
        failures: a sentence for every value that is missing.
        about: the hash of the dataset's manifest, versions, and of each metric the hash of its code.
    """

    keys: tuple[Key, ...]
    values: Mapping[str, NDArray[np.float64]]
    failures: tuple[str, ...]
    about: Mapping[str, Any]

    def of(
        self, metric: str, reference_id: Sequence[str], distortion: Sequence[str], level: Sequence[int]
    ) -> NDArray[np.float64]:
        """(m,) values of a metric on these images, higher is better: the sign of a metric that falls is turned.

        Raises InputError for an image that is not in the dataset.
        """
        place = {key: index for index, key in enumerate(self.keys)}
        wanted = [(str(r), str(d), int(k)) for r, d, k in zip(reference_id, distortion, level, strict=True)]
        absent = next((key for key in wanted if key not in place), None)
        if absent is not None:
            raise InputError(
                f"the opinions are of another dataset: {absent[1]} at level {absent[2]} of {one_line(absent[0])!r} is "
                "not in this one"
            )
        found = self.values[metric][[place[key] for key in wanted]]
        return found if METRICS[metric].better == "higher" else -found


@dataclass(frozen=True)
class _Job:
    """The copies of one reference.

    Attributes:
        dataset: folder.
        reference: its row of the table of references.
        rows: of the manifest.
        codes: metrics to measure, and the hash of the code of each.
        part: the file of the values.
    """

    dataset: Path
    reference: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    codes: Mapping[str, str]
    part: Path


def metric_values(
    dataset: Path,
    names: Sequence[str],
    out: Path,
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> MetricValues:
    """Measure every distorted image of a dataset; values that are in `out` already are not measured again.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        names: metrics of `METRICS`.
        out: folder for the files of values and `metric_values.parquet`, which has the columns reference_id, distortion,
            level, metric, value (null where the metric failed) and reason. The same images and code give the same
            bytes. Values of metrics that are not named stay in the files of values, and out of the table.
        workers: processes; one for each usable core by default.
        on_progress: called with (images done, images in all); at first with those that were there already.

    Raises:
        UnknownNameError: no such metric.
        InputError: no finished dataset, no metric, or another process is at work in `out`.
        MissingDependencyError: pyarrow or a package of a metric is not installed.
        InfrastructureError: `out` cannot be written, a worker was killed, or the server of a metric does not answer.
    """
    require_pyarrow()
    if not names:
        raise InputError(f"name at least one metric of: {', '.join(METRICS)}")
    codes = {name: code_sha256(name) for name in dict.fromkeys(names)}
    jobs = _jobs(dataset, codes, out / PARTS)
    images = sum(len(job.rows) for job in jobs)
    with resumable_work(out, "measurement of metrics"):
        (out / PARTS).mkdir(exist_ok=True)
        left = [job for job in jobs if not job.codes.keys() <= _measured(job).keys()]
        done = images - sum(len(job.rows) for job in left)
        if done:
            on_progress(done, images)
        for index, _ in carried_out(_work, [(job,) for job in left], workers):
            done += len(left[index].rows)
            on_progress(done, images)
        return _table(jobs, codes, dataset, out)


def code_sha256(name: str) -> str:
    """The hash of the code of a metric: of the module that measures, and of data files beside it, such as weights.

    Of a metric behind a server, which has an `identity`, that counts too.

    Raises UnknownNameError for an unknown metric, MissingDependencyError if a package that it needs is not installed.
    """
    function = METRICS[name].build()
    module = inspect.getmodule(function) or inspect.getmodule(type(function))
    digest = hashlib.sha256(f"{merton.__version__}{getattr(function, 'identity', '')}".encode())
    if module is not None and module.__file__ is not None:
        file = Path(module.__file__)
        beside = [path for path in sorted(file.parent.iterdir()) if path.is_file() and path.suffix != ".py"]
        for path in (file, *beside):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _jobs(dataset: Path, codes: Mapping[str, str], parts: Path) -> list[_Job]:
    layout.refuse_unfinished(dataset)
    references = {row["id"]: row for row in read_table(dataset / layout.REFERENCE_TABLE)}
    manifest = read_table(dataset / layout.MANIFEST)
    jobs = []
    for name, rows in groupby(manifest, key=itemgetter("reference_id")):
        if name not in references:
            raise InputError(f"{str(dataset)!r}: the manifest names a reference {one_line(name)!r} that does not exist")
        jobs.append(_Job(dataset, references[name], tuple(rows), codes, parts / f"{name}.json"))
    return jobs


def _measured(job: _Job) -> dict[str, Any]:
    """Metric to its code, values and reasons, of those in the part that are still right; empty without a part."""
    try:
        part = json.loads(job.part.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if part["images"] != _hashes(job):
        return {}
    return {
        name: entry for name, entry in part["metrics"].items() if job.codes.get(name, entry["code"]) == entry["code"]
    }


def _hashes(job: _Job) -> list[str]:
    return [row["sha256"] for row in (job.reference, *job.rows)]


def _work(job: _Job) -> None:
    """Measure what is missing of a reference, and write its part."""
    metrics = _measured(job)
    missing = [name for name in job.codes if name not in metrics]
    found: dict[str, list[float | None]] = {name: [] for name in missing}
    reasons: dict[str, dict[str, str]] = {name: {} for name in missing}
    reference = _image(job.dataset, job.reference)
    images = [_image(job.dataset, row) for row in job.rows]
    for name, values in _values(missing, images, reference).items():
        for index, (row, value) in enumerate(zip(job.rows, values, strict=True)):
            if isinstance(value, str):
                reasons[name][str(index)] = f"{name} of {row['file']}: {value}"
            found[name].append(None if isinstance(value, str) else value)
    for name in missing:
        metrics[name] = {"code": job.codes[name], "values": found[name], "reasons": reasons[name]}
    content = json.dumps({"images": _hashes(job), "metrics": metrics}, sort_keys=True)
    with written_whole(job.part, durable=False) as file:
        file.write(content.encode())


def _image(dataset: Path, row: Mapping[str, Any]) -> Image | str:
    """The image of a row, or the reason why it cannot be used."""
    try:
        content = (dataset / row["file"]).read_bytes()
    except OSError as error:
        return f"{row['file']} cannot be read: {error.strerror}"
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        return f"{row['file']} has changed since the dataset was built: see `merton dataset verify`"
    try:
        return decode_image(content)
    except InputError as error:
        return f"{row['file']} is {error}"


def _values(
    names: Sequence[str], images: Sequence[Image | str], reference: Image | str
) -> dict[str, list[float | str]]:
    """Metric to the value of each image, or the reason why it has none.

    A metric behind a server gets all images at once; the others measure image by image, because they share work.
    """
    of = {name: reference if METRICS[name].needs_reference else None for name in names}
    many = {name: getattr(METRICS[name].build(), "values", None) for name in names}
    sound = [image for image in images if not isinstance(image, str)]
    found: dict[str, list[float | str]] = {name: [] for name in names}
    for name, values in many.items():
        other = of[name]
        if values is not None and not isinstance(other, str) and len(sound) == len(images):
            found[name] = list(values(sound, sound if other is None else [other] * len(sound)))
    alone = [name for name in names if not found[name]]
    for image in images:
        for name in alone:
            found[name].append(_value(name, image, of[name]))
    return found


def _value(name: str, image: Image | str, reference: Image | str | None) -> float | str:
    """The value of a metric, or the reason why it has none: one image must not end the work on all others."""
    for one in (image, reference):
        if isinstance(one, str):
            return one
    try:
        value = float(measure(name, image, reference))  # type: ignore[arg-type]
    except InfrastructureError:  # says nothing about the image, and would for every other one
        raise
    except MertonError as error:
        return one_line(error, 300)
    except Exception as error:
        return one_line(describe_error(error), 300)
    return "the value is not a number" if math.isnan(value) else value


def _table(jobs: Sequence[_Job], codes: Mapping[str, str], dataset: Path, out: Path) -> MetricValues:
    """Write the table of all parts."""
    rows = _Rows()
    for job in jobs:
        rows.add(job, _measured(job))
    about = {
        "dataset": layout.sha256_of(dataset / layout.MANIFEST),
        "merton": merton.__version__,
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "metrics": {name: {"better": METRICS[name].better, "code_sha256": code} for name, code in codes.items()},
    }
    pyarrow = require_pyarrow()
    schema = pyarrow.schema(
        [(n, "string") for n in ("reference_id", "distortion")]
        + [("level", "int8"), ("metric", "string"), ("value", "float64"), ("reason", "string")],
        metadata={"merton": json.dumps(about, sort_keys=True)},
    )
    table = pyarrow.table(dict(zip(schema.names, zip(*rows.long, strict=True), strict=True)), schema=schema)
    with written_whole(out / TABLE) as file:
        file.write(parquet_bytes(table))
    values = {name: np.array(rows.values[name], np.float64) for name in codes}
    return MetricValues(tuple(rows.keys), values, tuple(row[-1] for row in rows.long if row[-1]), about)


@dataclass
class _Rows:
    """The rows of the table, and the same values by metric."""

    keys: list[Key] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    long: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, job: _Job, metrics: Mapping[str, Any]) -> None:
        for index, row in enumerate(job.rows):
            key = (row["reference_id"], row["distortion"], row["level"])
            self.keys.append(key)
            for name in job.codes:
                value = metrics[name]["values"][index]
                self.values.setdefault(name, []).append(math.nan if value is None else value)
                self.long.append((*key, name, value, metrics[name]["reasons"].get(str(index))))
