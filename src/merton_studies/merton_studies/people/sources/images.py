"""Pictures in a folder: for tasks and quality one picture an item, for pairs two of one folder."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from merton.errors import InputError
from merton.progress import OnProgress
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Images
from merton_studies.people.sources.prepared import ENDINGS, images_prepared

REFERENCE = "reference"
"""Name, without its ending, of the hidden reference of the pictures in a folder."""


def items_of(loaded: Loaded, settings: Images, on_progress: OnProgress) -> list[Item]:
    """The items, by path.

    Quality: a picture called `reference` is the hidden reference of those in its folder. Pairs: each two pictures of a
    scene; their file names without ending are the contenders.

    Raises:
        InputError: no such folder, no pictures in it, or a file that is no picture.
    """
    folder = loaded.place(settings.folder)
    if not folder.is_dir():
        raise InputError(f"{loaded.path}: items.images.folder: there is no folder {settings.folder!r}")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    if not files:
        raise InputError(f"{folder} has no pictures; endings of pictures are {', '.join(ENDINGS)}")
    names = [path.relative_to(folder).as_posix() for path in files]
    texts = {"instruction": settings.instruction} if settings.instruction else {}
    if loaded.project.protocol == "pairs":
        return _pairs(loaded, folder, names, texts, on_progress)
    media = images_prepared(files, loaded.media, on_progress)
    references = {str(Path(name).parent): name for name in names if Path(name).stem == REFERENCE}
    return [
        Item(name, _scene(name), {"image": medium("image")}, texts, _facts(loaded.project.protocol, name, references))
        for name, medium in zip(names, media, strict=True)
    ]


def _facts(protocol: str, name: str, references: dict[str, str]) -> dict[str, str]:
    if protocol == "tasks":
        return {"file": name}
    path = Path(name)
    if path.stem == REFERENCE:
        return {"image": name, "reference": "", "distortion": REFERENCE, "level": "0"}
    return {"image": name, "reference": references.get(str(path.parent), ""), "distortion": path.stem, "level": ""}


def _pairs(
    loaded: Loaded, folder: Path, names: list[str], texts: dict[str, str], on_progress: OnProgress
) -> list[Item]:
    scenes: dict[str, list[str]] = {}
    for name in names:
        if "/" in name:
            scenes.setdefault(_scene(name), []).append(name)
    found = [(scene, *pair) for scene, own in scenes.items() for pair in combinations(own, 2)]
    if not found:
        raise InputError(f"{folder} has no two pictures in one folder: pairs are of pictures of one folder")
    used = sorted({name for _, *pair in found for name in pair})
    media = dict(zip(used, images_prepared([folder / name for name in used], loaded.media, on_progress), strict=True))
    return [
        Item(
            f"{a} | {b}",
            scene,
            {"a": media[a]("a"), "b": media[b]("b")},
            texts,
            {"a": Path(a).stem, "b": Path(b).stem, "case": scene},
        )
        for scene, a, b in found
    ]


def _scene(name: str) -> str:
    """The first folder of a picture's path, or its name where there is none."""
    return name.split("/")[0]
