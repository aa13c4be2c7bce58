"""The pictures of a dataset: references and their distorted copies, each with its licence."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.pages.words import flat
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.origin import Origin, read_origin
from merton.perception.dataset.tables import read_table
from merton.results.parquet import require_pyarrow
from merton_studies.annotate.dataset import ReferenceImage, pixels_sha256
from merton_studies.annotate.views import scene_of
from merton_studies.release.licences import BUILT_IN, HUB_IDS, Licence, Sources
from merton_studies.release.part import DatasetPart, LeftOut, SourceLine
from merton_studies.release.table import Field, Row, Table, split_of

REFERENCES, IMAGES = "references", "images"
RENDERED = "simulation"
"""The domain of renderings; references without tags count as photographs, so that their licences are asked for."""

_ATTRIBUTES = (
    Field("luminance", "float64", "mean BT.601 luma, 0..1"),
    Field("contrast", "float64", "standard deviation of luma, 0..0.5"),
    Field("chrominance", "float64", "colourfulness of Hasler and Suesstrunk; 0 for grey"),
    Field("blur", "float64", "variance of the Laplacian of 8-bit luma; falls with blur"),
    Field("spatial_information", "float64", "ITU-T P.910 SI: standard deviation of the Sobel gradient"),
)
_SIZE = (
    Field("width", "int32", "of the picture [px]"),
    Field("height", "int32", "of the picture [px]"),
    Field("sha256", "string", "of the bytes of the PNG, in hexadecimal digits"),
)
_LICENCE = (
    Field("licence", "string", "of the picture, a name of SPDX's list, or public-domain"),
    Field("attribution", "string", "who is to be named for the picture; empty for renderings"),
)
REFERENCE_FIELDS = (
    Field("id", "string", "of the reference"),
    Field("scene", "string", "the scene that it shows: the unit of every interval, and of the splits"),
    Field("image", "image", "the undistorted picture, an 8-bit RGB PNG"),
    Field("domain", "string", "simulation or real; empty, like the other tags, where the images had none"),
    Field("perspective", "string", "first_person or third_person"),
    Field("object", "string", "block, container, food, tool or living; an imported one may be any text"),
    Field("background", "string", "table, kitchen, room, outdoors or plain; an imported one may be any text"),
    Field("tasks", "string", "instructions for a robot, the easiest first", depth=1),
    Field("source", "string", "name of the file it was made from"),
    Field("source_sha256", "string", "of that file, in hexadecimal digits"),
    *_SIZE,
    *_ATTRIBUTES,
    Field("blur_effect", "float64", "blur of the reference itself, 0..1, Crete et al. 2007"),
    Field("noise_sigma", "float64", "noise of the reference itself, grey values of 0..255, Immerkaer 1996"),
    *_LICENCE,
)
IMAGE_FIELDS = (
    Field("reference_id", "string", "the reference it was made from"),
    Field("scene", "string", "the scene of the reference"),
    Field("image", "image", "the distorted picture, an 8-bit RGB PNG"),
    Field("distortion_id", "string", "number of the type, as in Embodied-IQA or in the data set that was imported"),
    Field("distortion", "string", "name of the type"),
    Field("category", "string", "family of the type"),
    Field("level", "int8", "1 (weak) and up; 5 is the strongest of Merton's"),
    Field(
        "value",
        "float64",
        "the parameter of the level, in the unit of the next column; empty if not known",
    ),
    Field("unit", "string", "of the value; a value in pixels holds at reference_width_px"),
    Field("reference_width_px", "int32", "the width for which a value in pixels is meant [px]"),
    Field("seed", "int64", "of everything random in the copy; empty of imported pictures"),
    *_SIZE,
    *_ATTRIBUTES,
    Field("psnr", "float64", "against the reference [dB]; infinite where both are equal"),
    Field("ssim", "float64", "against the reference, -1..1, Wang et al. 2004"),
    *_LICENCE,
)


@dataclass
class Pictures:
    """The part of a dataset that may be published.

    Attributes:
        part: tables and sentences.
        manifest_sha256: of the dataset's manifest, by which annotations name it.
        scene_of: reference to scene, of all references, those left out too.
    """

    part: DatasetPart
    manifest_sha256: str
    scene_of: dict[str, str] = field(default_factory=dict)


def pictures(dataset: Path, licence: Licence, sources: Sources) -> Pictures:
    """References and distorted images of a folder that `merton dataset build` finished.

    A rendering has the licence of the whole, which is its publisher's, who may alter it. A photograph needs its own:
    that of `sources`, or of the photographs that the built-in sample has. One without a licence is left out with its
    copies; of one whose licence forbids altered copies, the copies are left out.

    Raises:
        InputError: no finished dataset, or a picture differs from the tables.
    """
    layout.refuse_unfinished(dataset)
    manifest_sha256 = hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest()
    rows, origin = read_table(dataset / layout.REFERENCE_TABLE), read_origin(dataset)
    found, held, with_copies = Pictures(DatasetPart(), manifest_sha256), dict[str, Licence](), set[str]()
    for row in rows:
        found.scene_of[row["id"]] = _scene(row)
        own = _licence(dataset, row, licence, sources, origin)
        if own is None:
            reason = f"{_kind(origin)} whose licence is not known; its distorted copies are left out too"
            found.part.left_out.append(LeftOut(REFERENCES, row["id"], reason))
            continue
        held[row["id"]] = own
        if own is licence or own.allows_altered_copies:
            with_copies.add(row["id"])
        else:
            reason = f"its distorted copies: {own.spdx} forbids altered ones"
            found.part.left_out.append(LeftOut(IMAGES, row["id"], reason))
    shown = [row for row in rows if row["id"] in held]
    if not shown:
        raise InputError(
            f"nothing of {str(dataset)!r} may be published: each is {_kind(origin)} without a known licence; "
            "name theirs with --sources, whose column source takes patterns, too: * is every file"
        )
    _describe(found.part, dataset, shown, held, origin)
    found.part.tables += [
        Table(REFERENCES, "An undistorted picture.", REFERENCE_FIELDS, lambda: _references(dataset, shown, held)),
        Table(
            IMAGES,
            "A distorted copy of a reference.",
            IMAGE_FIELDS,
            lambda: _images(dataset, found.scene_of, {name: held[name] for name in with_copies}),
        ),
    ]
    return found


def _scene(row: Row) -> str:
    return scene_of(ReferenceImage.of_row(row))


def _licence(dataset: Path, row: Row, of_all: Licence, sources: Sources, origin: Origin) -> Licence | None:
    """The licence of a reference; None if it must not be published.

    A picture that was imported has the licence that its import named, be it rendered or not: it is somebody else's.
    """
    named = sources.of(row["source"] or "")
    if named or (row["domain"] == RENDERED and not origin.name):
        return named or of_all
    if origin.licence in HUB_IDS:
        return Licence(origin.licence, origin.name)
    return BUILT_IN.get(_pixels(dataset, row), ("", None))[1]


def _pixels(dataset: Path, row: Row) -> str:
    return pixels_sha256(decode(_content(dataset, row)))


def _content(dataset: Path, row: Row) -> bytes:
    """The bytes of a picture; raises InputError if they differ from the tables."""
    try:
        content = (dataset / row["file"]).read_bytes()
    except OSError as error:
        raise InputError(f"{row['file']} of the dataset cannot be read: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise InputError(f"{row['file']} has changed since the dataset was built: see `merton dataset verify`")
    return content


def _references(
    dataset: Path, rows: list[dict[str, Any]], held: Mapping[str, Licence]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in rows:
        scene = _scene(row)
        yield split_of(scene), _published(dataset, row, scene, held[row["id"]])


def _images(
    dataset: Path, scenes: Mapping[str, str], held: Mapping[str, Licence]
) -> Iterator[tuple[str, dict[str, Any]]]:
    with require_pyarrow().parquet.ParquetFile(dataset / layout.MANIFEST) as manifest:
        for batch in manifest.iter_batches(1024):
            for row in batch.to_pylist():
                licence = held.get(row["reference_id"])
                if licence is not None:
                    scene = scenes[row["reference_id"]]
                    yield split_of(scene), _published(dataset, row, scene, licence)


def _published(dataset: Path, row: dict[str, Any], scene: str, licence: Licence) -> dict[str, Any]:
    image = {"bytes": _content(dataset, row), "path": row["file"]}
    return row | {"scene": scene, "image": image, "licence": licence.spdx, "attribution": licence.attribution}


def _describe(
    part: DatasetPart, dataset: Path, rows: list[dict[str, Any]], held: Mapping[str, Licence], origin: Origin
) -> None:
    settings = json.loads((dataset / layout.SETTINGS).read_bytes()) if (dataset / layout.SETTINGS).is_file() else {}
    levels = "all five levels" if settings.get("levels") == "all" else "one random level"
    part.made.append(
        f"{origin.made} Distortions: {origin.words}."
        if origin.name
        else f"`merton dataset build` distorted {len(rows)} references in {origin.types} of the 30 ways of "
        f"Embodied-IQA (section 3.1), each type at {levels}."
    )
    part.provenance += flat(settings, "dataset · ")
    for name in (layout.MANIFEST, layout.REFERENCE_TABLE):
        part.provenance.append((f"dataset · sha256 of {name}", str(layout.sha256_of(dataset / name))))
    for tag in ("domain", "perspective", "object", "background"):
        counts = Counter(row[tag] for row in rows)
        part.shares.append((f"references by {tag}", ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))))
    by_licence = Counter((held[row["id"]].spdx, held[row["id"]].attribution, row["domain"]) for row in rows)
    for (spdx, attribution, domain), count in sorted(by_licence.items()):
        name = "imported pictures" if origin.name else "photographs" if domain != RENDERED else "renderings"
        part.sources.append(SourceLine(name, f"references: {count}", spdx, attribution))
    part.privacy += _privacy(dataset, rows, origin)
    part.limits += [
        "The pictures of one scene are one draw, not several: cluster every interval by `scene`.",
        "Names of objects and backgrounds, and the difficulty of tasks, were not checked by other people.",
        "Levels of two types with one number are not equally strong: only their order is known."
        if origin.name
        else "Levels of one type have the same seed: they differ in strength alone.",
    ]
    if any(row["domain"] == RENDERED for row in rows):
        part.limits.append("Renderings are not photographs: what holds on them was not shown on real pictures.")
    if left := {entry.table: sum(other.table == entry.table for other in part.left_out) for entry in part.left_out}:
        counts_left = " and ".join(f"{count} of `{name}`" for name, count in sorted(left.items()))
        part.limits.append(f"Because of their licences, pictures are left out: {counts_left}; LEFT_OUT.csv names them.")


def _kind(origin: Origin) -> str:
    return f"a picture of {origin.name}" if origin.name else "a photograph"


def _privacy(dataset: Path, rows: list[dict[str, Any]], origin: Origin) -> list[str]:
    if origin.name:
        return [
            f"The pictures are those of {origin.name}. Merton looks for no faces, screens or name plates in them: "
            "their publishers have to."
        ]
    photographs = [row for row in rows if row["domain"] != RENDERED]
    found = []
    if len(photographs) < len(rows):
        found.append("The simulated cell has tables, things and a robot, and no people: no face can appear in it.")
    known = [BUILT_IN[pixels][0] for row in photographs if (pixels := _pixels(dataset, row)) in BUILT_IN]
    if known:
        found.append(f"Of the photographs, {len(known)} come with public packages and show: {'; '.join(known)}.")
    if others := len(photographs) - len(known):
        things = Counter((row["object"], row["background"]) for row in photographs)
        named = (f"{thing} ({where}) {count}" for (thing, where), count in sorted(things.items()) if thing)
        inside = ", ".join(named) or "what no tag says"
        found.append(
            f"{others} photographs are none of Merton's sample; Sources says who is to be named for them. "
            f"By their tags, all photographs show: {inside}. "
            "Merton looks for no faces, screens or name plates in them: their publishers have to."
        )
    return found
