"""The study of a dataset: trends, sensitivity, claims and page, on planted opinions."""

from __future__ import annotations

import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from planted_opinions import CHANCE, permuted, planted, planted_sums
from scipy import stats

from merton.errors import InputError
from merton.statistics.resampling import interval, resamples
from merton_studies.opinions import dataset, dataset_page, distributions, opinion_figures, sensitivity
from merton_studies.opinions.claims import FAILS, HOLDS, UNRESOLVED, _of_tags, claims
from merton_studies.opinions.dataset import Case, dataset_study
from merton_studies.opinions.opinion import opinions

CLAIMED = [
    "gaussian_denoise",
    "block_interpolation",
    "max_brighten",
    "mean_brighten",
    "lens_blur",
    "multiplicative_noise",
    "jpeg",
    "webp",
    "haze",
]


def mean_of(kind: str, level: int) -> float:
    """What the paper says of these types: serious from level 1, harmless, falling, unchanged, and some between."""
    falls = {"gaussian_denoise": (1.6, 0.1), "block_interpolation": (4.9, 0.0), "max_brighten": (5.0, 0.6)}
    start, slope = falls.get(kind, (4.3, 0.3))
    return 4.2 if kind == "mean_brighten" else start - slope * level


@pytest.fixture(scope="module")
def study() -> dataset.DatasetStudy:
    sums, images = planted_sums(CLAIMED, mean_of, scenes=30, noise=0.12)
    return dataset_study(opinions(sums, images), sums)


def jonckheere(groups: list[list[float]]) -> float:
    """One-sided p-value against scores that do not fall, with the variance for ties of Hollander, Wolfe and Chicken
    (2014), equation 6.19, written out from the book."""
    count, above = [len(group) for group in groups], 0.0
    for one in range(len(groups)):
        for other in range(one + 1, len(groups)):
            above += sum((x < y) + (x == y) / 2 for x in groups[one] for y in groups[other])
    n = sum(count)
    ties = np.unique([x for group in groups for x in group], return_counts=True)[1].tolist()
    first = n * (n - 1) * (2 * n + 5) - sum(c * (c - 1) * (2 * c + 5) for c in count)
    first -= sum(t * (t - 1) * (2 * t + 5) for t in ties)
    second = sum(c * (c - 1) * (c - 2) for c in count) * sum(t * (t - 1) * (t - 2) for t in ties)
    third = sum(c * (c - 1) for c in count) * sum(t * (t - 1) for t in ties)
    variance = first / 72 + second / (36 * n * (n - 1) * (n - 2)) + third / (8 * n * (n - 1))
    return float(stats.norm.cdf((above - (n * n - sum(c * c for c in count)) / 4) / math.sqrt(variance)))


def test_the_trend_is_jonckheere_and_terpstras() -> None:
    rng = np.random.default_rng(3)
    for ties in (1, 9):
        groups = [(rng.normal(5 - 0.1 * level, 1, 6 + level)).round(ties).tolist() for level in range(1, 6)]
        level = np.repeat(np.arange(1, 6), [len(group) for group in groups])
        score = np.concatenate(groups).round(ties)
        tau, p = distributions.kendall(level, score)
        assert p == pytest.approx(jonckheere(groups), abs=1e-12)
        assert tau == pytest.approx(stats.kendalltau(level, score).statistic, abs=1e-12)
    assert distributions.kendall(level, np.ones(len(level)))[1] == 1.0


def test_null_studies_are_rarely_said_to_fall() -> None:
    """Of 60 studies of 30 types without any effect but that of scenes; of 1,200 one in 21 had a false alarm."""
    assert false_alarms(60) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 60)


def false_alarms(studies: int) -> float:
    """Share of null studies in which the procedure finds a type that falls."""
    found = 0
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        of_scene = np.repeat(rng.normal(0.0, 0.3, 20), 3)
        p = [distributions.kendall(rng.integers(1, 6, 60), of_scene + rng.normal(0.0, 0.3, 60))[1] for _ in range(30)]
        found += bool((stats.false_discovery_control(p) < distributions.SIGNIFICANT).any())
    return found / studies


def test_intervals_of_a_trend_come_from_scenes_drawn_again() -> None:
    """Kendall's tau in a draw is that of the images of the drawn scenes, copies of an image counting once a pair."""
    found = planted(["haze"], mean_of, scenes=6)
    drawn = resamples(found.scene, "a", draws=5)
    taus = distributions._taus(found.level, found.decision, drawn)
    for weights, tau in zip(drawn.weights, taus, strict=True):
        rows = np.repeat(np.arange(len(found.level)), weights[drawn.scene].astype(int))
        pairs = np.triu_indices(len(rows), 1)
        x, y = (np.sign(column[rows][pairs[0]] - column[rows][pairs[1]]) for column in (found.level, found.decision))
        assert tau == pytest.approx((x * y).sum() / math.sqrt((x * x).sum() * (y * y).sum()), abs=1e-12)
    means = drawn.means(found.decision, found.level, 6)
    rows = np.repeat(np.arange(len(found.level)), drawn.weights[0][drawn.scene].astype(int))
    assert means[0, 5] == pytest.approx(found.decision[rows][found.level[rows] == 5].mean(), abs=1e-12)


def test_thirds_of_images_and_of_cells() -> None:
    found = planted(CLAIMED, mean_of)
    thirds = sensitivity.by_image(found.decision, found.distortion_id, found.level, found.reference_id)
    sizes = [int((thirds == name).sum()) for name in sensitivity.JND]
    assert max(sizes) - min(sizes) <= 1
    assert found.decision[thirds == "mild"].min() >= found.decision[thirds == "medium"].max()
    cells = sensitivity.by_cell(found.decision, found.distortion_id, found.level)
    kinds = {(kind, level) for kind, level in zip(found.distortion.tolist(), found.level.tolist(), strict=True)}
    counts = [int(((found.distortion == kind) & (found.level == level)).sum()) for kind, level in kinds]
    sizes = [int((cells == name).sum()) for name in sensitivity.JND]
    assert max(sizes) - min(sizes) <= max(counts)
    for kind, level in kinds:
        assert len(np.unique(cells[(found.distortion == kind) & (found.level == level)])) == 1
    again = sensitivity.by_cell_again(
        found.decision, found.distortion_id, found.level, resamples(np.arange(len(cells)), 0, draws=1)
    )
    assert set(np.unique(again)) <= {*sensitivity.JND, ""}


def test_equal_scores_and_missing_ones_have_no_class() -> None:
    found = planted(CLAIMED, mean_of)
    flat = sensitivity.by_cell(np.ones(len(found.level)), found.distortion_id, found.level)
    assert set(flat.tolist()) == {""}
    score = np.where(found.level == 3, np.nan, found.decision)
    assert set(sensitivity.by_cell(score, found.distortion_id, found.level)[found.level == 3].tolist()) == {""}


def test_an_insensitive_type_is_mild_and_a_sharply_falling_one_severe(study: dataset.DatasetStudy) -> None:
    rows = {label.split(" ", 1)[1]: classes for label, classes in dataset.map_rows(study.opinions, "decision")}
    assert set(rows["block interpolation"]) == {"mild"}
    assert set(rows["gaussian denoise"]) == {"severe"}
    trends = {trend.distortion: trend for trend in study.stages["decision"].results.trends}
    assert trends["gaussian_denoise"].p < 0.01
    assert trends["block_interpolation"].p > 0.1
    assert trends["block_interpolation"].distortion_id == "02"
    assert trends["max_brighten"].falls
    assert trends["max_brighten"].fall == pytest.approx(2.4, abs=0.2)


@pytest.mark.parametrize("planted_level", [1.4, 3.1, 4.6])
def test_half_of_the_loss_is_found_within_a_fifth_of_a_level(planted_level: float) -> None:
    """59 references, each in a scene of its own, with one random level."""
    rng = np.random.default_rng(7)
    level = rng.integers(1, 6, 59)
    share = 1.0 / (1.0 + np.exp((level - planted_level) / 0.5))
    score = 2.0 + 3.0 * share + rng.normal(0.0, 0.15, 59)
    (found,) = sensitivity.half_losses(score, np.full(59, "haze"), level, np.arange(59).astype(str), 2.0)
    assert found.level == pytest.approx(planted_level, abs=0.2)
    assert found.interval is not None
    assert found.interval[0] <= planted_level <= found.interval[1]


def half_loss(
    shares: list[float], scenes: int = 12, noise: float = 0.0, seed: int = 0, levels: tuple[int, ...] = (1, 2, 3, 4, 5)
) -> sensitivity.HalfLoss:
    """Of one image a scene and level, with the share that is left at each; chance is 2 of 5."""
    rng, level = np.random.default_rng(seed), np.tile(levels, scenes)
    scene = np.repeat(np.arange(scenes), len(levels))
    share = np.tile(shares, scenes) + noise * (rng.normal(size=scenes)[scene] + rng.normal(size=len(level)))
    (found,) = sensitivity.half_losses(2.0 + 3.0 * share, np.full(len(level), "haze"), level, scene.astype(str), 2.0)
    return found


@pytest.mark.parametrize(
    ("shares", "level"),
    [
        ([0.9, 0.7, 0.5, 0.3, 0.1], 3.0),
        ([0.45] * 5, 0.5 / 0.55),
        ([0.5] * 5, 1.0),
        ([0.98, 0.97, 0.96, 0.95, 0.05], 4.5),
        ([0.7, 0.8, 0.3, 0.3, 0.1], 3.0 - 0.2 / 0.45),
        ([0.55] * 5, math.inf),
    ],
)
def test_the_level_is_the_first_at_which_the_monotone_means_are_half(shares: list[float], level: float) -> None:
    """The fifth by hand: levels 1 and 2 become .75, and .5 lies 5/9 of the way to .3."""
    found = half_loss(shares)
    assert found.level == pytest.approx(level)
    assert found.interval is not None
    assert found.interval.low <= level <= found.interval.high
    assert half_loss(shares, 1).interval is None, "of a single scene"


def test_a_level_that_was_not_seen_is_interpolated_or_unknown() -> None:
    assert half_loss([0.8, 0.2], levels=(1, 5)).level == pytest.approx(3.0)
    found = half_loss([0.8, 0.7], levels=(1, 3))
    assert (found.level, found.highest) == (math.inf, 3)
    assert opinion_figures.half_loss_words(found).startswith("never half up to 3 [")


def test_a_mean_that_rises_over_half_has_no_single_level() -> None:
    found = half_loss([0.8, 0.3, 0.8, 0.8, 0.8], noise=0.1)
    assert math.isnan(found.level)
    assert found.rise is not None
    assert (found.rise.low, found.rise.low_mean) == (2, pytest.approx(2.9, abs=0.3))
    assert found.interval is not None
    assert found.interval.low < 1.6 < found.interval.high
    assert opinion_figures.half_loss_words(found) == "not falling"
    assert "by more than its error, so no single level has half" in opinion_figures.rise_words(found)
    assert "<circle" not in opinion_figures.level_bar(found.level, found.interval)
    below = half_loss([0.7, 0.1, 0.1, 0.2, 0.4], noise=0.03)
    assert below.level == pytest.approx(1.0 + 0.2 / 0.5, abs=0.2)
    assert opinion_figures.rise_words(below).endswith("by more than its error")
    assert opinion_figures.rise_words(half_loss([0.9, 0.7, 0.5, 0.3, 0.1])) == ""


@pytest.mark.parametrize(
    ("shares", "level"), [([0.45] * 5, 0.5 / 0.55), ([0.55] * 5, math.inf), ([0.8, 0.3, 0.8, 0.8, 0.8], 1.6)]
)
def test_curves_that_are_no_logistic_are_held(shares: list[float], level: float) -> None:
    """Of 150 studies by a logistic curve's bootstrap 0, 37 and 0."""
    held = 0
    for seed in range(40):
        found = half_loss(shares, 12, 0.15, seed)
        assert found.interval is not None
        held += found.interval.low <= level <= found.interval.high
    assert held >= 36


def test_chance_that_is_no_lower_than_no_change_leaves_nothing_to_lose() -> None:
    level = np.tile(np.arange(1, 6), 3)
    assert sensitivity.half_losses(np.full(15, 5.0), np.full(15, "haze"), level, level.astype(str), 5.0) == []


def test_a_type_that_costs_little_never_loses_half() -> None:
    level = np.repeat(np.arange(1, 6), 12)
    (found,) = sensitivity.half_losses(np.full(60, 4.9), np.full(60, "haze"), level, np.arange(60).astype(str), 2.0)
    assert math.isinf(found.level)
    assert found.interval is not None
    assert math.isinf(found.interval.high)
    assert opinion_figures.half_loss_words(found).startswith("never half up to 5 [")


def test_claims_hold_fail_or_stay_open(study: dataset.DatasetStudy) -> None:
    verdicts = {claim.text: claim.verdict for claim in study.claims}
    assert verdicts["decision: max brighten falls significantly with the level"] == HOLDS
    assert verdicts["decision: mean brighten has no significant change from level 1 to 5"] == HOLDS
    assert verdicts["decision: gaussian denoise is serious already at level 1 (severe)"] == HOLDS
    assert verdicts["decision: block interpolation is without significant effect even at level 5 (mild)"] == HOLDS
    assert verdicts["decision: real images score higher than simulated ones"] == UNRESOLVED
    assert verdicts["decision: position, rotation and state are nearly independent (SRCC below .3)"] == FAILS
    absent = [words for words in verdicts if "darken" in words]
    assert [verdicts[words] for words in absent] == ["not applicable"] * 4


@pytest.mark.parametrize(
    ("tags", "measured"),
    [
        (["first_person"] * 4 + ["third_person"] * 2, "third person higher by +0.50 no interval"),
        (["third_person"] * 6, "one perspective only: third person"),
        ([""] * 6, "no image has a perspective"),
    ],
)
def test_a_missing_interval_is_not_a_missing_tag(tags: list[str], measured: str) -> None:
    """4 first-person and 2 third-person images of one scene: there is a difference, and nothing to resample."""
    found = SimpleNamespace(
        domain=np.full(6, "real"),
        perspective=np.array(tags),
        scene=np.full(6, "s"),
        value=lambda stage: np.array([3.0, 3.0, 3.0, 3.0, 3.5, 3.5]),
    )
    told = {claim.text: claim for claim in _of_tags(found, "decision")}  # type: ignore[arg-type]
    claim = told["decision: first-person images score far below third-person ones"]
    assert (claim.measured, claim.verdict) == (measured, UNRESOLVED)


def test_a_single_score_has_no_deviation() -> None:
    one, two = distributions.spread(np.array([3.0])), distributions.spread(np.array([3.0, 4.0]))
    assert one is not None
    assert two is not None
    assert (one.deviation, two.deviation) == (None, pytest.approx(0.5**0.5))


def test_one_scene_resolves_nothing() -> None:
    sums, images = planted_sums(CLAIMED, mean_of, scenes=1)
    found = opinions(sums, images)
    results = {stage: dataset_study(found).stages[stage].results for stage in found.stages}
    verdicts = [claim.verdict for claim in claims(found, results) if claim.verdict != "not applicable"]
    assert verdicts.count(UNRESOLVED) >= len(verdicts) - 3  # those of a test, which takes no scenes


def test_intervals_need_draws_that_differ() -> None:
    assert interval(np.ones(10)) is None
    assert interval(np.full(10, np.nan)) is None
    assert interval(np.arange(1001) / 1000) == (0.025, 0.975)


def test_cases_are_where_level_and_score_disagree(study: dataset.DatasetStudy) -> None:
    high, low = dataset.instructive(study.opinions, "decision", 4)
    assert (study.opinions.level[high] >= 4).all()
    assert (study.opinions.level[low] <= 2).all()
    score, level = study.opinions.decision, study.opinions.level
    assert score[high[0]] == score[level >= 4].max()
    assert score[low[0]] == score[level <= 2].min()
    for rows in (high, low):
        assert len(set(study.opinions.distortion[rows].tolist())) == len(rows)


class Addresses(HTMLParser):
    """Collects what a page would load or lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "action")]


def test_the_page_needs_nothing_else_and_no_order_of_rows(study: dataset.DatasetStudy, tmp_path: Path) -> None:
    case = Case(
        "decision", "r<1>", "jpeg", 5, 4.5, ("data:image/jpeg;base64,AA", None), (("Pick", "<b>", "<b>no"),), "vla-0"
    )
    file = dataset_page.write_dataset_page(study, [case], tmp_path / "study.html")
    text = file.read_text()
    page = Addresses()
    page.feed(text)
    assert all(address.startswith(("#", "data:")) for address in page.found)
    assert [f"#{name}" for name in dataset_page.SECTIONS] == [
        one for one in page.found if one in {f"#{name}" for name in dataset_page.SECTIONS}
    ]
    assert "r&lt;1&gt;" in text
    assert "<b>" not in text
    sums, _ = planted_sums(CLAIMED, mean_of, scenes=30, noise=0.12)
    again = dataset_study(permuted(study.opinions), sums)
    assert dataset_page.write_dataset_page(again, [case], tmp_path / "again.html").read_bytes() == file.read_bytes()
    assert "cases" not in dataset_page.fragments(study)


def test_nothing_to_study_is_said_in_a_sentence() -> None:
    sums, images = planted_sums(["haze"], mean_of)
    found = opinions(sums, images)
    five = np.full(len(found.level), 5.0)
    with pytest.raises(InputError, match="nothing to study"):
        dataset_study(replace(found, cognition=five, decision=five))
    with pytest.raises(InputError, match="not zscore"):
        dataset_study(replace(found, about={"label": "zscore"}))
    flat = dataset.remarks(replace(found, decision=five))
    assert flat == ["decision is 5 on every image, so it tells nothing apart: no levels of sensitivity."]
    assert found.about["chance"] == CHANCE
    blind = dataset.remarks(replace(found, about={**found.about, "by_chance": {"vla-1": {"decision": 4.9}}}))
    assert blind == ["vla-1 scores 4.90 of 5 with its decision for another scene: it hardly looks."]
