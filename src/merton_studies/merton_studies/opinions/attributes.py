"""Low-level attributes of a dataset's images by type of distortion (Embodied-IQA, Appendix G and Fig. 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.pages.words import interval_words, number, readable, signed
from merton.perception.dataset import layout
from merton.perception.dataset.tables import read_table
from merton.results.text import counted
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.resampling import Resamples, interval, resamples
from merton_studies.opinions.published import Claim, ClaimVerdict

ATTRIBUTES = ("luminance", "contrast", "chrominance", "blur", "spatial_information")
SHARPENING = ("sharpness_change",)
DENOISING = ("gaussian_denoise", "cnn_denoise")
IRREGULAR = ("color_quantization", "grayscale_quantization", "sharpness_change", "contrast_change")
"""Types that the paper's sentences name; in a dataset without them a sentence is not applicable."""
BLUR = "blur"
"""The category that the paper's first three types are of."""
PERMUTATIONS = 2000
_GRID = 256

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TypeAttributes:
    """The attributes of a type's images, each normalised over the whole dataset.

    Attributes:
        number, name, category: of the type, as the manifest has them.
        values: (n, 5) `ATTRIBUTES`; NaN where an attribute is not known.
        spread: mean over the attributes of the standard deviation; the whole dataset has 1.
        irregularity: mean over the attributes of Sarle's coefficient of bimodality, (skewness^2 + 1) / kurtosis: 1/3 of
            a normal distribution, 5/9 of a uniform one, at most 1 (two points).
    """

    number: str
    name: str
    category: str
    values: Floats
    spread: float
    irregularity: float

    @property
    def label(self) -> str:
        """Number and name in words."""
        return f"{self.number} {readable(self.name)}".strip()

    @property
    def moments(self) -> list[tuple[float, float]]:
        """Mean and standard deviation of each of `ATTRIBUTES`; NaN of one that is not known."""
        known = (column[~np.isnan(column)] for column in self.values.T)
        return [(float(one.mean()), float(one.std())) if len(one) else (np.nan, np.nan) for one in known]


@dataclass(frozen=True)
class AttributeStudy:
    """The result.

    Attributes:
        types: in the order of their numbers.
        claims: the paper's sentences, with what these images give.
        images, references, scenes: how many.
        sha256: of the manifest.
    """

    types: tuple[TypeAttributes, ...]
    claims: tuple[Claim, ...]
    images: int
    references: int
    scenes: int
    sha256: str


def attribute_study(dataset: Path, scene_of: Mapping[str, str]) -> AttributeStudy:
    """Compute it from the manifest, whatever its types are.

    Ours: the mean and the standard deviation that normalise an attribute are those of all distorted images. Intervals
    are 95 %, by the bootstrap over scenes.

    Args:
        dataset: its folder.
        scene_of: reference to its scene.

    Raises:
        InputError: no finished dataset, or one whose images have no attributes.
    """
    if not (dataset / layout.MANIFEST).is_file():
        raise InputError(f"{str(dataset)!r} holds no finished dataset: run `merton dataset build` to its end")
    rows = read_table(dataset / layout.MANIFEST)
    own = _matrix(rows)
    if not len(rows) or np.isnan(own).all():
        raise InputError(f"the images of {str(dataset)!r} have no attributes in {layout.MANIFEST}")
    references = {row["id"]: row for row in read_table(dataset / layout.REFERENCE_TABLE)}
    mean, spread = np.nanmean(own, axis=0), np.nanstd(own, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    values = (own - mean) / spread
    gaps = (own - _matrix([references[row["reference_id"]] for row in rows])) / spread
    keys = [(row["distortion_id"] or "", row["distortion"], row["category"] or "") for row in rows]
    names = sorted(set(keys))
    group = np.array([names.index(key) for key in keys], np.int64)
    scenes = np.array([scene_of[row["reference_id"]] for row in rows])
    found = _Found(names, group, values, gaps, resamples(scenes, "attributes"))
    types = tuple(
        TypeAttributes(*key, values[group == at], float(found.spread[at]), float(found.irregularity[at]))
        for at, key in enumerate(names)
    )
    claims = tuple(_claims(found))
    sha256 = layout.sha256_of(dataset / layout.MANIFEST) or ""
    counts = len(rows), len({row["reference_id"] for row in rows}), len(np.unique(scenes))
    return AttributeStudy(types, claims, *counts, sha256)


def _matrix(rows: list[dict[str, Any]]) -> Floats:
    return np.array([[np.nan if row[name] is None else row[name] for name in ATTRIBUTES] for row in rows], np.float64)


class _Found:
    """The statistics of each type, for all images and in every draw of scenes."""

    def __init__(
        self,
        names: list[tuple[str, str, str]],
        group: NDArray[np.int64],
        values: Floats,
        gaps: Floats,
        drawn: Resamples,
    ) -> None:
        self.names, self.group, self.values, self.drawn = names, group, values, drawn
        self.types, self.categories = [name for _, name, _ in names], [category for *_, category in names]
        one = Resamples(drawn.scene, np.ones((1, drawn.weights.shape[1])))
        self.spread, self.irregularity = (each[0] for each in self._shapes(one))
        self.spread_draws, self.irregularity_draws = self._shapes(drawn)
        blur = gaps[:, ATTRIBUTES.index("blur")]
        self.blur, self.blur_draws = one.means(blur, group, len(names))[0], drawn.means(blur, group, len(names))

    def places(self, named: tuple[str, ...]) -> list[int]:
        """Of the types with these names."""
        return [at for at, name in enumerate(self.types) if name in named]

    def _shapes(self, drawn: Resamples) -> tuple[Floats, Floats]:
        """(draws, types) mean spread and mean irregularity over the attributes."""
        spreads, shapes = [], []
        for column in self.values.T:
            if np.isnan(column).all():
                continue
            first, second, third, fourth = (drawn.means(column**k, self.group, len(self.names)) for k in (1, 2, 3, 4))
            variance = np.maximum(second - first**2, 0.0)
            skew = third - 3 * first * second + 2 * first**3
            peak = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
            spreads.append(np.sqrt(variance))
            known = peak > 1e-12
            # skewness^2 + 1 over kurtosis, each multiplied by variance^2
            part = np.where(variance > 0, skew**2 / np.where(variance > 0, variance, 1.0), 0.0) + variance**2
            shapes.append(np.divide(part, peak, out=np.full(peak.shape, np.nan), where=known))
        with np.errstate(invalid="ignore"):
            return np.mean(spreads, axis=0), np.mean(shapes, axis=0)


def _claims(found: _Found) -> Iterator[Claim]:
    blurred = [at for at, category in enumerate(found.categories) if category.lower() == BLUR]
    yield _shifted("The blur curve of blurred images lies left of their references", found, blurred, -1.0, "blur")
    yield _shifted("The blur curve of sharpened images lies right", found, found.places(SHARPENING), 1.0, SHARPENING[0])
    yield _extreme(
        "The denoised types have the sharpest distributions",
        found.places(DENOISING),
        DENOISING,
        (-found.spread, -found.spread_draws),
        "standard deviations",
        -1.0,
    )
    yield _extreme(
        "Colour and grayscale quantization, sharpness change and contrast change are the most irregular",
        found.places(IRREGULAR),
        IRREGULAR,
        (found.irregularity, found.irregularity_draws),
        "coefficients of bimodality",
        1.0,
    )
    yield _alike(found)


def _shifted(text: str, found: _Found, places: list[int], sign: float, wanted: str) -> Claim:
    """Whether the blur attribute of types lies on one side of their references', each type by its own interval."""
    if not places:
        return Claim(text, f"no type is {readable(wanted)}", "not applicable")
    ends = [interval(found.blur_draws[:, at]) for at in places]
    measured = "; ".join(
        f"{readable(found.types[at])} by {signed(float(found.blur[at]))} {interval_words(end, sign=True)}"
        for at, end in zip(places, ends, strict=True)
    )
    verdict: ClaimVerdict = "not resolved"
    if all(end is not None and min(sign * end[0], sign * end[1]) > 0 for end in ends):
        verdict = "holds"
    elif any(end is not None and max(sign * end[0], sign * end[1]) < 0 for end in ends):
        verdict = "does not hold"
    return Claim(text, measured, verdict)


def _extreme(
    text: str,
    places: list[int],
    named: tuple[str, ...],
    statistic: tuple[Floats, Floats],
    unit: str,
    sign: float,
) -> Claim:
    """Whether the least of some types exceeds the greatest of all others, by their difference in every draw."""
    whole, draws = statistic
    others = [at for at in range(len(whole)) if at not in places]
    if len(places) < len(named) or not others:
        missing = "none of them" if not places else "not all of them"
        return Claim(text, f"{missing} among these types", "not applicable")

    def gap(values: Floats) -> Floats:
        return np.asarray(values[..., places].min(axis=-1) - values[..., others].max(axis=-1))

    ends = interval(gap(draws))
    mean = [number(sign * float(whole[part].mean())) for part in (places, others)]
    measured = (
        f"mean {unit} {mean[0]}, of all others {mean[1]}; the nearest of both differ by "
        f"{signed(sign * float(gap(whole)))} {interval_words(_turned(ends, sign), sign=True)}"
    )
    verdict: ClaimVerdict = "not resolved"
    if ends is not None and ends[0] > 0:
        verdict = "holds"
    elif ends is not None and ends[1] < 0:
        verdict = "does not hold"
    return Claim(text, measured, verdict)


def _turned(ends: Interval | None, sign: float) -> Interval | None:
    return ends if ends is None or sign > 0 else Interval(-ends[1], -ends[0])


def _alike(found: _Found) -> Claim:
    """Whether types of one category resemble one another more than others: energy distances, categories permuted."""
    text = "Types of one category have similar distributions"
    categories = np.unique(found.categories, return_inverse=True)[1]
    pairs = np.array(list(combinations(range(len(categories)), 2)), np.int64).reshape(-1, 2)
    same = categories[pairs[:, 0]] == categories[pairs[:, 1]]
    if not same.any() or same.all():
        return Claim(text, "no category has two types beside another category", "not applicable")
    distance = _energy(found, pairs)

    def gap(labels: NDArray[np.int64]) -> float:
        within = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        return float(distance[~within].mean() - distance[within].mean())

    whole = gap(categories)
    rng = generator("attributes", "categories")
    drawn = np.array([gap(rng.permutation(categories)) for _ in range(PERMUTATIONS)])
    p = (1.0 + float((drawn >= whole - 1e-12).sum())) / (1.0 + PERMUTATIONS)
    verdict: ClaimVerdict = "holds" if p < 0.05 else "does not hold" if p > 0.95 else "not resolved"
    measured = (
        f"mean energy distance {number(float(distance[same].mean()))} within, {number(float(distance[~same].mean()))} "
        f"between categories; one-sided p {p:.4f} of {counted(PERMUTATIONS, 'permutation')}"
    )
    return Claim(text, measured, verdict)


def _energy(found: _Found, pairs: NDArray[np.int64]) -> Floats:
    """(pairs,) energy distance of two types (Szekely and Rizzo 2013): sqrt(2 integral of (F - G)^2), averaged."""
    parts = []
    for column in found.values.T:
        known = column[~np.isnan(column)]
        if not len(known):
            continue
        grid = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _GRID)))
        if len(grid) < 2:
            continue
        shares = np.array([_share_below(column[found.group == at], grid) for at in range(len(found.names))])
        squared = (shares[pairs[:, 0], :-1] - shares[pairs[:, 1], :-1]) ** 2
        parts.append(np.sqrt(2.0 * squared @ np.diff(grid)))
    return np.asarray(np.mean(parts, axis=0))


def _share_below(values: Floats, grid: Floats) -> Floats:
    known = np.sort(values[~np.isnan(values)])
    return np.searchsorted(known, grid, side="right") / max(len(known), 1)
