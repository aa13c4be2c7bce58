"""The benchmark of metrics: its columns, splits, floors and ceilings, and that a kill changes no byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import write_miniature
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.perception.dataset.tables import read_table
from merton.perception.images import read_image
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.learned.measures import measures
from merton.perception.quality.learned.prepared import Item, Preparation
from merton.perception.quality.pairs import ImagePair
from merton.statistics.coefficients import srcc
from merton_studies.iqa import folds, metric_floors
from merton_studies.iqa.benchmark import benchmark, chosen_metrics
from merton_studies.iqa.judged import JudgedImages, read_judged
from merton_studies.iqa.metric_page import headline, split_rows, splits_section
from merton_studies.iqa.metric_table import (
    ALL_SPLITS,
    GROUPS,
    OVERALL,
    Benchmark,
    Cell,
    CoefficientRow,
    columns,
    difference,
    marks,
    summarised,
)
from merton_studies.iqa.results import write_benchmark
from merton_studies.iqa.values import MetricValues, metric_values
from merton_studies.opinions.opinion import SubjectSums, write_subjects

SUBJECTS = ("glance", "hesitant", "stubborn")


class Memory:
    """A planted trainable metric that knows training references by heart, and judges others by their grain."""

    name, needs_reference, description = "memory", True, "planted"
    trainings = 0

    def train(
        self,
        pairs: Sequence[ImagePair],
        labels: np.ndarray,
        seed: int,
        folder: Path,
        epochs: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        cache: Path | None = None,
    ) -> Path:
        Memory.trainings += 1
        means: dict[str, list[float]] = {}
        for pair, label in zip(pairs, labels, strict=True):
            means.setdefault(str(pair.reference), []).append(float(label))
        weights = folder / "weights.npz"
        weights.write_text(json.dumps({name: float(np.mean(values)) for name, values in means.items()}))
        if on_progress:
            on_progress(1, 1)
        return weights

    def missing(self) -> str | None:
        return None

    def start(self, weights: Path) -> str:
        return "planted start; nothing else"

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        return ()

    def cost(self, images: int, epochs: int | None) -> float:
        return float(images)

    def prepare(self, pairs: Sequence[ImagePair], cache: Path, on_progress: object = None) -> None:
        cache.mkdir(exist_ok=True)

    def predict(self, weights: Path, pairs: Sequence[ImagePair], cache: Path | None = None) -> np.ndarray:
        known = json.loads(weights.read_text())
        middle = float(np.mean(list(known.values())))
        return np.array([known.get(str(pair.reference), middle) - _roughness(pair) for pair in pairs])


def _roughness(pair: ImagePair) -> float:
    assert pair.reference is not None
    gap = read_image(pair.image).astype(float) - read_image(pair.reference)
    return 0.01 * float(np.abs(gap).mean())


@pytest.fixture(scope="module")
def memory() -> Iterator[None]:
    TRAINABLE.add("memory", Memory())
    yield
    del TRAINABLE._entries["memory"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine scenes, three cameras, two types at five levels: 270 images."""
    return write_miniature(tmp_path_factory.mktemp("benchmark") / "data", scenes=9)


@pytest.fixture(scope="module")
def subjects(dataset: Path) -> Path:
    """Opinions of four subjects that fall with the level and depend on the reference: a planted effect."""
    rows = read_table(dataset / "manifest.parquet")
    draw = np.random.default_rng(3)
    effect = {name: draw.normal(0.0, 0.8) for name in sorted({row["reference_id"] for row in rows})}
    base = np.array([3.0 - 0.25 * row["level"] + effect[row["reference_id"]] for row in rows])
    sums = np.clip(base + draw.normal(0.0, 0.2, (len(SUBJECTS), len(rows))), 0.0, 5.0)
    parts = {
        name: np.clip(sums + draw.normal(0.0, 0.1, sums.shape), 0, 5) for name in ("position", "rotation", "state")
    }
    blank = {name: np.full(sums.shape, np.nan) for name in ("cognition", "bleu", "rouge_l", "cider")}
    found = SubjectSums(
        np.array(SUBJECTS),
        np.array([row["reference_id"].rpartition("_")[0] for row in rows]),
        np.array([row["reference_id"] for row in rows]),
        np.array([row["distortion"] for row in rows]),
        np.array([row["level"] for row in rows]),
        {"decision": sums, **parts, **blank},
        5,
        {},
    )
    path = dataset.parent / "subjects.parquet"
    write_subjects(found, path)
    return path


@pytest.fixture(scope="module")
def judged(dataset: Path, subjects: Path) -> JudgedImages:
    return read_judged(dataset, subjects, "decision")


@pytest.fixture(scope="module")
def values(dataset: Path) -> MetricValues:
    return metric_values(dataset, ["psnr", "noise_sigma"], dataset.parent / "values", 1)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `found`."""
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def found(judged: JudgedImages, values: MetricValues, memory: None, out: Path) -> Benchmark:
    return benchmark(judged, values, ["memory"], out, repeats=2, workers=1)


def parts(folder: Path) -> dict[Path, bytes]:
    """All parts of the reference split."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("reference/*/*.json")}


def judged_of(judged: JudgedImages, scenes: int, types: int) -> JudgedImages:
    """The same images under so many names of scenes and types."""
    number = np.arange(len(judged.pairs))
    scene, kind = (np.array([f"x{one % many}" for one in number]) for many in (scenes, types))
    return replace(judged, opinions=replace(judged.opinions, scene=scene, distortion=kind))


def row(found: Benchmark, split: str, metric: str) -> CoefficientRow:
    return next(row for row in found.of_split(split) if row.metric == metric)


def test_the_table_has_the_papers_columns_and_says_why_one_is_empty(found: Benchmark) -> None:
    names = [column.name for column in found.table]
    assert names == [
        "overall", "position", "rotation", "state", "first", "third", "mild", "medium", "severe", "real", "simulation",
        "level_1", "level_2", "level_3", "level_4", "level_5",
    ]  # fmt: skip
    sizes = {column.name: int(column.images.sum()) for column in found.table}
    assert (sizes["overall"], sizes["first"], sizes["third"], sizes["real"]) == (270, 90, 180, 0)
    assert sizes["mild"] + sizes["medium"] + sizes["severe"] == 270
    assert [sizes[f"level_{level}"] for level in range(1, 6)] == [54] * 5
    assert [column.name for column in found.table if column.reason] == ["real"]
    assert "Real: no image of this study is in 'Real'." in found.remarks


def test_a_coefficient_is_scipys_over_the_test_images_of_each_repeat(
    found: Benchmark, judged: JudgedImages, values: MetricValues
) -> None:
    """Worked out again from the split alone; the sign of a metric that falls with quality is turned."""
    seen = judged.opinions
    for metric, sign in (("psnr", 1.0), ("noise_sigma", -1.0)):
        image = dict(zip(values.keys, values.values[metric], strict=True))
        keys = zip(seen.reference_id.tolist(), seen.distortion.tolist(), seen.level.tolist(), strict=True)
        x = sign * np.array([image[key] for key in keys])
        expected = []
        for fold in folds.folds(judged, "reference", 2):
            first = fold.test[seen.perspective[fold.test] == "first_person"]
            expected.append(srcc(x[first], seen.value("decision")[first]))
        cell = row(found, "reference", metric).cells["first"]["srcc"]
        assert cell.mean == pytest.approx(np.mean(expected), abs=1e-8)
        assert cell.sd == pytest.approx(np.std(expected, ddof=1), abs=1e-8)
        assert (cell.repeats, cell.n) == (2, 20)
        whole = row(found, "reference", metric).cells[OVERALL]["srcc"]
        assert whole.low < whole.mean < whole.high


def test_the_split_over_pairs_leaks_a_planted_effect_of_the_reference(found: Benchmark) -> None:
    """The metric that knows references by heart is flattered, and the floor with references shows it."""
    assert row(found, "pair", "memory").mean() > row(found, "reference", "memory").mean() + 0.3
    reference, cells = "mean per type, level and reference", "mean per type and level"
    assert row(found, "pair", reference).mean() > row(found, "pair", cells).mean() + 0.3
    assert row(found, "reference", reference).mean() == row(found, "reference", cells).mean()


def test_floors_and_ceiling_stand_beside_the_metrics(found: Benchmark) -> None:
    for split in ALL_SPLITS:
        groups = [item.group for item in found.of_split(split)]
        assert groups == ["zero_shot"] * 2 + ["full_reference"] + ["floor"] * 4 + ["ceiling"]
    ceiling = row(found, "reference", metric_floors.CEILING).mean()
    assert ceiling > max(item.mean() for item in found.of_split("reference") if item.group != "ceiling")
    level = row(found, "reference", "level alone")
    assert level.cells["level_3"]["srcc"].repeats == 0
    assert np.isnan(level.mean("level_3"))


def test_a_subject_left_out_is_tested_on_its_own_scores_and_trains_nothing(judged: JudgedImages) -> None:
    left_out = folds.folds(judged, "subject", 3)
    assert len(left_out) == len(SUBJECTS)
    for number, fold in enumerate(left_out):
        np.testing.assert_array_equal(fold.targets["decision"], judged.own["decision"][number])
        others = np.delete(judged.own["decision"], number, axis=0)
        np.testing.assert_allclose(fold.labels, others.mean(axis=0), rtol=1e-12)
        assert not set(judged.opinions.scene[fold.train]) & set(judged.opinions.scene[fold.test])


def test_a_second_run_computes_nothing_and_a_killed_one_goes_on(
    found: Benchmark,
    out: Path,
    judged: JudgedImages,
    values: MetricValues,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that ends in its second training leaves whole parts; the next gives what an undisturbed one gives."""
    arguments = (judged, values, ["memory"], tmp_path, ["reference"], 2, None, 1)
    train, before = Memory.train, Memory.trainings
    monkeypatch.setattr(Memory, "train", lambda *a: _ended() if Memory.trainings > before else train(*a))
    with pytest.raises(KeyboardInterrupt):
        benchmark(*arguments)
    monkeypatch.undo()
    assert len(parts(tmp_path)) == len(parts(out)) - 1
    progress: list[tuple[int, int]] = []
    again = benchmark(*arguments, lambda _: nullcontext(lambda *place: progress.append(place)))
    assert Memory.trainings == before + 2
    assert progress[-1][0] == progress[-1][1]
    assert parts(tmp_path) == parts(out)
    assert repr(again.of_split("reference")) == repr(found.of_split("reference"))
    benchmark(*arguments)
    assert Memory.trainings == before + 2
    assert len(list((tmp_path / "weights").iterdir())) == 2
    assert not list((tmp_path / "training").iterdir())


def _ended() -> Path:
    raise KeyboardInterrupt


def test_a_metric_that_cannot_be_trained_costs_its_own_rows_alone(
    judged: JudgedImages, memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise InputError("three images are too few")

    monkeypatch.setattr(Memory, "train", refuse)
    found = benchmark(judged, None, ["memory"], tmp_path, ["reference"], 1, workers=1)
    assert found.failures == ("memory over the reference split, repeat 1: three images are too few",)
    assert "memory" not in [item.metric for item in found.rows]
    assert len(found.rows) == 5


def test_two_processes_give_what_one_gives(found: Benchmark, out: Path, judged: JudgedImages, tmp_path: Path) -> None:
    benchmark(judged, None, [], tmp_path, ["reference"], 2, workers=2)
    whole = parts(out)
    assert {path: content == whole[path] for path, content in parts(tmp_path).items()} == dict.fromkeys(
        parts(tmp_path), True
    )
    assert len(parts(tmp_path)) == 10


def test_a_metric_is_trained_over_its_splits_and_benchmarks_share_what_they_prepare(
    judged: JudgedImages, memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 270 images the second benchmark prepares none anew."""
    kind = Preparation("measures", measures)
    monkeypatch.setattr(Memory, "items", lambda _, pair: ((kind, (pair.image,)),))
    told: list[tuple[int, int]] = []
    for out in ("one", "other"):
        found = benchmark(
            judged, None, {"reference": ["memory"]}, tmp_path / out, ("pair", "reference"), 1, workers=1,
            step=lambda name: nullcontext(lambda *place: told.append(place) if "images" in name else None),
            prepared=tmp_path / "prepared",
        )  # fmt: skip
    assert told[-2:] == [(270, 270), (0, 0)]
    assert len(list((tmp_path / "prepared" / "measures").iterdir())) == 270
    assert [row.split for row in found.rows if row.metric == "memory"] == ["reference"]
    groups = [item.row.group for item in split_rows(found)]
    assert groups == sorted(groups, key=list(GROUPS).index), "a group is shown in two parts"


@pytest.mark.parametrize("kind", ["pair", "reference", "type"])
def test_no_two_repeats_have_the_same_test_part(judged: JudgedImages, kind: str) -> None:
    few = judged_of(judged, scenes=2, types=4)
    parts = [tuple(fold.test.tolist()) for fold in folds.folds(few, kind, 10)]
    assert len(set(parts)) == len(parts)
    assert len(parts) == {"pair": 10, "reference": 2, "type": 4}[kind]  # a scene of 2, a type of 4


def test_too_few_parts_are_said_and_one_repeat_has_no_deviation(judged: JudgedImages, tmp_path: Path) -> None:
    few = judged_of(judged, scenes=2, types=4)
    found = benchmark(few, None, (), tmp_path, ["reference"], repeats=5, workers=1)
    assert "Over reference only 2 different test parts can be drawn, so it has 2 repeats." in found.remarks
    for row in found.rows:
        assert {cell.repeats for cell in row.cells[OVERALL].values()} <= {0, 1, 2}
    once = benchmark(few, None, (), tmp_path / "once", ["reference"], repeats=1, workers=1)
    assert "±" not in "".join(str(splits_section(once)).split("</thead>")[1:])
    assert not [item for item in split_rows(once) if item.gain]


def test_differences_are_of_the_same_repeats_though_one_failed() -> None:
    """0.1 more in each repeat that both have; without a place for the failed one, neighbours would be compared."""
    numbers = {"n": 4.0, "low": None, "high": None, "krcc": None, "plcc": None, "plcc_logistic": None}
    whole = [{OVERALL: {"srcc": value, **numbers}} for value in (0.2, 0.9, 0.4)]
    other = [{}, *({OVERALL: {"srcc": value, **numbers}} for value in (1.0, 0.52))]
    one, two = (summarised("m", "floor", "pair", each).cells[OVERALL]["srcc"] for each in (whole, other))
    assert (one.repeats, two.repeats) == (3, 2)
    found = difference(two, one)
    assert found is not None
    assert found[0] == pytest.approx(0.11)


def test_equal_differences_have_no_interval() -> None:
    nan = float("nan")
    one, two = (Cell(nan, 0.0, nan, nan, 9.0, 2, (value, value)) for value in (0.25, 0.67))
    assert difference(one, two) is None


def test_marks_are_the_papers() -> None:
    def made(metric: str, group: str, value: float) -> CoefficientRow:
        return CoefficientRow(metric, group, "pair", {OVERALL: {"srcc": Cell(value, 0.0, 0.0, 0.0, 9.0, 1)}})

    rows = [
        made("a", "zero_shot", 0.4), made("b", "zero_shot", 0.5), made("c", "zero_shot", -0.3),
        made("d", "full_reference", 0.45), made("e", "full_reference", 0.7), made("f", "no_reference", 0.2),
        made("g", "floor", 0.9),
    ]  # fmt: skip
    assert marks(rows, OVERALL, "srcc") == {
        "b": "best baseline", "a": "second", "c": "", "e": "best", "d": "second below", "f": "best below",
    }  # fmt: skip


def test_the_interval_of_a_difference_counts_shared_training_images() -> None:
    """Nadeau and Bengio's (1/J + 1/4) in the place of 1/J: here by hand, t(3) = 3.182446."""
    one, other = (Cell(0.0, 0.0, 0.0, 0.0, 9.0, 4, values) for values in ((0.5, 0.6, 0.7, 0.8), (0.4, 0.6, 0.4, 0.6)))
    mean, (low, high) = difference(one, other) or (0.0, (0.0, 0.0))
    half = 3.182446 * np.sqrt((1 / 4 + 1 / 4) * np.var([0.1, 0.0, 0.3, 0.2], ddof=1))
    assert (mean, high - mean, mean - low) == pytest.approx((0.15, half, half), abs=1e-6)


def test_a_cell_without_training_images_has_the_mean_of_its_level() -> None:
    distortion, level = np.array(["a", "a", "b", "b", "b"]), np.array([1, 2, 1, 2, 3])
    labels = np.array([4.0, 2.0, 3.0, 1.0, 9.0])
    found = metric_floors.cell_means(distortion, level, labels, np.array([0, 1, 2]))
    np.testing.assert_allclose(found, [4.0, 2.0, 3.0, 2.0, 3.0])


def test_a_quadratic_label_is_recovered_from_attributes() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))
    labels = 2.0 + x[:, 0] - 0.5 * x[:, 1] * x[:, 2] + x[:, 2] ** 2
    guess = metric_floors.attributes_regression(x, labels, np.arange(200))
    assert srcc(guess[200:], labels[200:]) > 0.99


def test_reliability_is_spearmans_and_browns() -> None:
    assert metric_floors.reliability(0.5) == pytest.approx(2 / 3)
    assert metric_floors.reliability(-0.2) == 0.0


def test_mistakes_are_one_sentence(
    judged: JudgedImages, dataset: Path, subjects: Path, tmp_path: Path, values: MetricValues
) -> None:
    with pytest.raises(
        InputError, match=r"^.*subjects.parquet has no opinions of cognition; it has those of: decision$"
    ):
        read_judged(dataset, subjects, "cognition")
    other = write_miniature(tmp_path / "other", scenes=1, levels=(2,))
    with pytest.raises(InputError, match=r"^the opinions are of another dataset: .* at level 1 of 'test_00_side'"):
        read_judged(other, subjects, "decision")
    with pytest.raises(InputError, match="holds no finished dataset"):
        read_judged(tmp_path, subjects, "decision")
    with pytest.raises(UnknownNameError, match="unknown split 'refrence'; did you mean 'reference'"):
        benchmark(judged, values, [], tmp_path / "out", ["refrence"])
    with pytest.raises(InputError, match=r"^a benchmark needs at least one repeat, got 0$"):
        benchmark(judged, values, [], tmp_path / "out", repeats=0)
    with pytest.raises(UnknownNameError, match="unknown metric 'pnsr'; did you mean 'psnr'"):
        chosen_metrics(["pnsr"])
    with pytest.raises(UnknownNameError, match="unknown label 'execution'"):
        columns(judged.opinions, "execution")


def test_the_files_hold_what_the_benchmark_found(found: Benchmark, tmp_path: Path) -> None:
    """Page, CSV, LaTeX and Parquet, twice the same bytes; the page needs nothing else and makes no request."""
    files = write_benchmark(found, tmp_path, "data <b>")
    before = [file.read_bytes() for file in files]
    assert [file.name for file in files] == ["decision.html", "decision.csv", "decision.tex", "decision.parquet"]
    assert [file.read_bytes() for file in write_benchmark(found, tmp_path, "data <b>")] == before

    table = read_table(tmp_path / "decision.parquet")
    psnr = next(r for r in table if (r["metric"], r["split"], r["column"]) == ("psnr", "reference", "first"))
    cell = row(found, "reference", "psnr").cells["first"]["srcc"]
    assert (psnr["indicator"], psnr["mean"], psnr["sd"], psnr["repeats"]) == ("srcc", cell.mean, cell.sd, 2)
    lines = (tmp_path / "decision.csv").read_text().splitlines()
    assert lines[0].startswith("metric,group,label,split,column,indicator,mean")
    assert len(lines) == len(table) + 1

    page = (tmp_path / "decision.html").read_text()
    assert "data &lt;b&gt;" in page
    assert page.count("<h3>Split ") == len(ALL_SPLITS)
    for name in ("half of the subjects", "mean per type and level", "PLCC*", "Real <small>(no images)"):
        assert name in page
    assert "http" not in page.replace("http-equiv", "")
    latex = (tmp_path / "decision.tex").read_text()
    assert latex.count("\\begin{tabular}") == latex.count("\\end{tabular}") == 3 * len(ALL_SPLITS)
    assert "\\textbf{" in latex


def test_the_headline_names_the_best_of_each_kind_and_the_ceiling(found: Benchmark) -> None:
    text = headline(found)
    best = max((item for item in found.of_split("reference") if item.group == "zero_shot"), key=CoefficientRow.mean)
    assert f"zero-shot {best.metric} {best.mean():.2f}" in text
    assert "Two halves of the subjects agree to" in text


def test_the_command_writes_the_table(dataset: Path, subjects: Path, tmp_path: Path) -> None:
    given = ["iqa", "benchmark", str(dataset), str(subjects), f"--out={tmp_path}", "--metrics=psnr,noise_sigma"]
    given += ["--splits=reference", "--repeats=1", "--workers=1"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "SRCC with decision over reference splits, the best of each kind: zero-shot" in result.output
    assert (tmp_path / "decision.html").exists()
    assert "Real: no image of this study is in 'Real'." in result.output
