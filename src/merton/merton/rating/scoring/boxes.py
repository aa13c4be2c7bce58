"""AP@[.50:.95] of COCO for each image alone: boxes against annotations (AGI-Elo, eq. 16; Lin et al. 2014).

An image is scored as a data set of its own, as COCO's evaluation does it: at each of ten overlaps (.50 to .95) the 100
highest scored boxes of a category are given to annotated ones, the precision is read at 101 recalls, and the mean over
overlaps, recalls and the image's annotated categories is its AP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from merton.errors import InputError
from merton.rating.checking import Floats
from merton.results.tables import json_value

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
MOST_BOXES = 100
"""Of a category in an image; further ones, with lower scores, do not count."""

Item = Mapping[str, Any]


def values(predictions: Path, truth: Path | None) -> dict[tuple[str, str], float]:
    """(agent, image) to AP@[.50:.95], 0..1, of every image with an annotation that is not a crowd.

    The agent is the name of the file. An image is called as its `file_name`, with its folders and without the ending,
    or else by its id.
    Boxes of a category that is not annotated in an image do not count, as in COCO's evaluation of that image.

    Raises:
        InputError: a file is not such JSON, a box is not a box, a box names an image that the annotations lack, or two
            images have one name.
    """
    assert truth is not None
    about = json_value(truth)
    if not isinstance(about, dict) or not all(isinstance(about.get(key), list) for key in ("images", "annotations")):
        raise InputError(f"{truth}: must be an object with the lists images and annotations")
    images = {_key(truth, item, "id"): str(item.get("file_name") or item["id"]) for item in about["images"]}
    images = {key: name.removesuffix(PurePosixPath(name).suffix) for key, name in images.items()}
    if len(set(images.values())) < len(images):
        (name, _), *_ = Counter(images.values()).most_common(1)
        raise InputError(f"{truth}: two images are called {name!r}")
    listed = json_value(predictions)
    if not isinstance(listed, list):
        raise InputError(f"{predictions}: must be a list of boxes")
    annotated = _by_image(truth, about["annotations"], images, ())
    guessed = _by_image(predictions, listed, images, ("score",))
    found: dict[tuple[str, str], float] = {}
    for image, items in annotated.items():
        value = image_ap(guessed.get(image, ()), items)
        if value is not None:
            found[predictions.stem, images[image]] = value
    return found


def image_ap(guessed: Sequence[Item], annotated: Sequence[Item]) -> float | None:
    """AP@[.50:.95] of one image; None if it has no annotation that is not a crowd.

    Args:
        guessed: boxes with category_id, bbox (x, y, width, height) [px] and score.
        annotated: with category_id, bbox, and perhaps iscrowd.
    """
    found = []
    for category in sorted({item["category_id"] for item in annotated}):
        right = [item for item in annotated if item["category_id"] == category]
        crowd = np.array([bool(item.get("iscrowd")) for item in right])
        if crowd.all():
            continue
        own = [item for item in guessed if item["category_id"] == category]
        order = np.argsort([-item["score"] for item in own], kind="stable")[:MOST_BOXES]
        boxes = np.array([own[place]["bbox"] for place in order], dtype=np.float64).reshape(-1, 4)
        overlap = overlaps(boxes, np.array([item["bbox"] for item in right], dtype=np.float64), crowd)
        found.append(np.mean([_average_precision(overlap, crowd, least) for least in OVERLAPS]))
    return float(np.mean(found)) if found else None


def overlaps(guessed: Floats, annotated: Floats, crowd: np.ndarray[Any, np.dtype[np.bool_]]) -> Floats:
    """(n, m) intersection over union of n and m boxes; over the guessed box alone where it is a crowd's.

    Args:
        guessed, annotated: (n, 2 d) and (m, 2 d), the lowest corner and then the extent along each of d axes.
        crowd: (m,).
    """
    axes = guessed.shape[1] // 2
    (at, extent), (other_at, other_extent) = np.split(guessed, [axes], axis=1), np.split(annotated, [axes], axis=1)
    low = np.maximum(at[:, None], other_at[None])
    high = np.minimum((at + extent)[:, None], (other_at + other_extent)[None])
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    own, other = extent.prod(axis=1)[:, None], other_extent.prod(axis=1)[None, :]
    whole = np.where(crowd[None, :], own, own + other - shared)
    return np.asarray(np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0.0))


def _average_precision(overlap: Floats, crowd: np.ndarray[Any, np.dtype[np.bool_]], least: float) -> float:
    """Of one category at one overlap, boxes sorted by falling score.

    Each box takes the annotated one that it overlaps most and that is free; only then a crowd, which it may share with
    others, and then it counts neither as right nor as wrong.
    """
    least = min(least, 1.0 - 1e-10)
    free = ~crowd
    right, counts = np.zeros(len(overlap), bool), np.ones(len(overlap), bool)
    for place, row in enumerate(overlap):
        for among in (free, crowd):
            open_ = np.where(among & (row >= least), row, -1.0)
            best = len(row) - 1 - int(np.argmax(open_[::-1]))  # of equal ones the last, as COCO's evaluation has it
            if open_[best] >= 0.0:
                if among is free:
                    right[place], free[best] = True, False
                else:
                    counts[place] = False
                break
    hits = np.cumsum(right[counts])
    recall = hits / np.count_nonzero(~crowd)
    precision = hits / np.arange(1, len(hits) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(recall, RECALLS, side="left")
    return float(np.mean(np.append(precision, 0.0)[places]))


def _key(path: Path, item: Any, name: str) -> int | str:
    key = item.get(name) if isinstance(item, dict) else None
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise InputError(f"{path}: an entry has no {name}: {str(item)[:60]}")
    return key


def _by_image(
    path: Path, items: Sequence[Any], images: Mapping[int | str, str], numbers: Sequence[str]
) -> dict[int | str, list[Item]]:
    """The boxes of each image, checked."""
    found: dict[int | str, list[Item]] = {}
    for item in items:
        image = _key(path, item, "image_id")
        _key(path, item, "category_id")
        box = item.get("bbox")
        values = [*box, *(item.get(name) for name in numbers)] if isinstance(box, list) and len(box) == 4 else [None]
        if not all(isinstance(v, int | float) and not isinstance(v, bool) and np.isfinite(v) for v in values):
            raise InputError(f"{path}: a bbox is four numbers, a score is one; got {str(item)[:80]}")
        if box[2] < 0 or box[3] < 0:
            raise InputError(f"{path}: a bbox has a negative width or height: {box}")
        if image not in images:
            raise InputError(f"{path}: image {image!r} is not among the {len(images)} annotated images")
        found.setdefault(image, []).append(item)
    return found
