"""What people say, from tables: the sheet they fill in, their agreement, their scores, and rankings beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton_studies.curation.assignment import Assignment, write_assignment
from merton_studies.curation.people import agreement_with_people, mean_kappa, read_ratings, read_verification
from merton_studies.curation.pool import Pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.rankings import compare, read_score_table
from merton_studies.curation.sheet import draw, sheet_id, write_sheet
from merton_studies.curation.taxonomy import Dimension, Taxonomy
from merton_studies.harness.scores import ScoredAnswer, write_predictions

NAMES = ("Colour", "Count")


def assignment(dimensions: Sequence[str]) -> Assignment:
    """Of questions q00, q01, ..."""
    taxonomy = Taxonomy(name="two", dimensions=tuple(Dimension(name=name, definition=f"{name}.") for name in NAMES))
    n = len(dimensions)
    ids = tuple(f"q{number:02d}" for number in range(n))
    none = np.zeros(n, bool)
    return Assignment(taxonomy, ("v",), ids, tuple((d,) for d in dimensions), ((),) * n, tuple(dimensions),
                      np.ones(n), none, none)  # fmt: skip


def pool(n: int) -> Pool:
    """Two questions in each scene."""
    questions = [
        Question(id=f"q{number:02d}", source="secret", text=f"=What is {number}?", answer_kind="free_text",
                 scene=f"scene {number // 2}", meta={"assigned": "Colour"})
        for number in range(n)
    ]  # fmt: skip
    return Pool.of(questions, [BenchmarkSource(name="secret")])


def table(path: Path, header: str, *rows: str) -> Path:
    """A CSV file."""
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def verification(path: Path, *rows: str) -> Path:
    return table(path, "question_id,dimension,rater,verdict", *rows)


ASSIGNED = assignment(["Colour"] * 30 + ["Count"] * 12 + ["Other"] * 8)


def test_a_sheet_is_balanced_and_in_random_order() -> None:
    rows = draw(ASSIGNED, ASSIGNED.ids, 20, seed=1)
    assigned = dict(zip(ASSIGNED.ids, ASSIGNED.dimension, strict=True))
    for name in NAMES:
        asked = [question for question, dimension in rows if dimension == name]
        assert len(asked) == len(set(asked)) == 20
        assert sum(assigned[question] == name for question in asked) == 10
    asked = [dimension for _, dimension in rows]
    assert asked not in (sorted(asked), sorted(asked, reverse=True))
    first = [assigned[question] == dimension for question, dimension in rows if dimension == "Colour"][:10]
    assert {True, False} == set(first)
    assert draw(ASSIGNED, ASSIGNED.ids[::-1], 20, seed=1) == rows
    assert draw(ASSIGNED, ASSIGNED.ids, 20, seed=2) != rows


def test_where_one_kind_is_scarce_the_other_is_too() -> None:
    rows = draw(ASSIGNED, ASSIGNED.ids, 100, seed=0)
    assert [sum(dimension == name for _, dimension in rows) for name in NAMES] == [2 * 20, 2 * 12]
    with pytest.raises(InputError, match="nothing to draw from"):
        draw(ASSIGNED, ASSIGNED.ids[:30], 100, seed=0)
    with pytest.raises(InputError, match="at least 2"):
        draw(ASSIGNED, ASSIGNED.ids, 1, seed=0)
    with pytest.raises(InputError, match="'q99' is not in the assignment"):
        draw(ASSIGNED, ["q99"], 100, seed=0)


def test_a_sheet_tells_neither_source_nor_assignment(tmp_path: Path) -> None:
    file = tmp_path / "sheet.csv"
    rows = draw(ASSIGNED, ASSIGNED.ids, 20, seed=0)
    write_sheet(rows, pool(50), ASSIGNED, file)
    text = file.read_text()
    assert not [word for word in ("secret", "q0", "scene", "assigned") if word in text]
    read = list(csv.DictReader(text.splitlines()))
    assert {row["verdict"] + row["rater"] for row in read} == {""}
    assert [row["question_id"] for row in read] == [sheet_id(name) for name, _ in rows]
    assert {row["question"][0] for row in read} == {"'"}  # a spreadsheet would compute what begins with =
    with pytest.raises(InputError, match="there already"):
        write_sheet(rows, pool(50), ASSIGNED, file)


def test_kappa_with_people_is_that_of_their_majority(tmp_path: Path) -> None:
    from sklearn.metrics import cohen_kappa_score  # here: it takes a second, in every worker that collects this file

    rng = np.random.default_rng(0)
    rows, people, automatic = [], [], []
    for number in range(50):
        own = ASSIGNED.dimension[number] == "Colour"
        votes = [own if rng.random() < 0.8 else not own for _ in range(3)]
        rows += [f"q{number:02d},Colour,r{rater},{'Yes' if vote else 'no'}" for rater, vote in enumerate(votes)]
        people.append(sum(votes) > 1)
        automatic.append(own)
    (found,) = agreement_with_people(read_verification([verification(tmp_path / "v.csv", *rows)]), ASSIGNED)
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(cohen_kappa_score(automatic, people), abs=1e-12)
    assert (found.kappa.n, found.raters.n, found.tied) == (50, 50, 0)
    assert found.share is not None
    assert found.share.value == pytest.approx(np.mean(np.array(people) == automatic))


def test_ties_blank_verdicts_and_names_of_the_sheet(tmp_path: Path) -> None:
    first = verification(
        tmp_path / "a.csv", "q00,Colour,ann,yes", f"{sheet_id('q01')},Colour,ann,yes", "q02,Count,ann,no"
    )
    second = verification(tmp_path / "b.csv", "q00,Colour,bob,no", f"{sheet_id('q01')},Colour,bob,", "q02,Count,bob,no")
    verdicts = read_verification([first, second])
    colour, count, both = agreement_with_people(verdicts, ASSIGNED, {"q00": "s", "q01": "s"})
    assert (colour.name, colour.tied, colour.raters.n, colour.raters.left_out) == ("Colour", 1, 1, 1)
    assert colour.kappa is not None
    assert (colour.kappa.n, colour.kappa.left_out) == (1, 1)
    assert count.kappa is not None
    assert count.kappa.value is None  # one category alone
    assert (both.name, both.raters.n) == ("all", 2)
    assert mean_kappa([colour, count, both]) is None
    assert [one.kappa for one in agreement_with_people(verdicts)] == [None] * 3


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["q00,Colour,ann,maybe"], r"v\.csv, line 2: verdict is 'maybe'; it must be yes or no"),
        (
            ["q00,Colour,ann,yes", "q00,Colour,ann,no"],
            r"line 3: 'ann' on question 'q00' and Colour stands twice.*line 2",
        ),
        (["q00,Colour,,yes"], "line 2: rater is empty"),
        (["q00,Colour,ann,"], "has no verdict"),
        (["q00,Colour,ann"], "line 2: has 3 cells"),
    ],
)
def test_wrong_verdicts_are_refused(tmp_path: Path, rows: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_verification([verification(tmp_path / "v.csv", *rows)])


def test_verdicts_of_another_assignment_are_refused(tmp_path: Path) -> None:
    verdicts = read_verification([verification(tmp_path / "v.csv", "q99,Colour,ann,yes")])
    with pytest.raises(InputError, match="'q99' has a verdict, but is not in the assignment"):
        agreement_with_people(verdicts, ASSIGNED)
    verdicts = read_verification([verification(tmp_path / "w.csv", "q00,Shape,ann,yes")])
    with pytest.raises(UnknownNameError, match="Shape"):
        agreement_with_people(verdicts, ASSIGNED)


def ratings(path: Path, *rows: str) -> Path:
    return table(path, "model,scenario,rater,criterion,score", *rows)


def test_human_scores_weigh_criteria_raters_and_scenarios_the_same(tmp_path: Path) -> None:
    file = ratings(
        tmp_path / "r.csv",
        "a,home,ann,planning,5", "a,home,ann,spatial,3", "a,home,bob,planning,2", "a,shop,ann,planning,1",
        "b,home,ann,planning,1", "b,shop,ann,planning,1",
    )  # fmt: skip
    (best, worst), _ = read_ratings(file)
    assert (best.model, best.mean) == ("a", pytest.approx(((4 + 2) / 2 + 1) / 2))
    assert (best.score, best.share) == (pytest.approx(25.0), pytest.approx(40.0))
    assert (best.scenarios, best.raters, best.marks) == (2, 2, 4)
    assert best.interval[0] < 25 < best.interval[1]
    assert (worst.score, worst.share) == (0.0, 20.0)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["a,home,ann,planning,6"], "line 2: score is '6'; it must be a number from 1 to 5"),
        (["a,home,ann,planning,2.5"], "line 2: score is 2.5; it must be a whole number"),
        (["a,home,ann,planning,2", "a,home,ann,planning,2"], "line 3: .* stands twice"),
        (["a,home,ann,planning,2", "b,shop,ann,planning,2"], "'a' has no rating in scenario 'shop'"),
        ([], "has no rating"),
    ],
)
def test_wrong_ratings_are_refused(tmp_path: Path, rows: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_ratings(ratings(tmp_path / "r.csv", *rows))


def scores(path: Path, models: int, keep: int, by_question: bool = True) -> Path:
    """Models m0 (best), m1, ... on questions in scenes of three and two dimensions; each `keep`-th question."""
    rng = np.random.default_rng(0)
    right = rng.random((models, 90)) < np.linspace(0.9, 0.2, models)[:, None]
    if not by_question:
        return table(path, "model,score", *(f"m{model},{right[model].mean()}" for model in range(models)))
    rows = [
        f"m{model},q{number},s{number // 3},{NAMES[number % 2]},{int(right[model, number])}"
        for model in range(models) for number in range(0, 90, keep)
    ]  # fmt: skip
    return table(path, "model,question_id,scene,dimension,score", *rows)


def test_a_curated_benchmark_beside_the_pool_and_people(tmp_path: Path) -> None:
    curated, full = scores(tmp_path / "c.csv", 12, 3), scores(tmp_path / "f.csv", 12, 1)
    people = {f"m{model}": 90.0 - model + (model % 3) for model in range(12)} | {"unknown": 1.0}
    found = compare(read_score_table(curated), read_score_table(full), people)
    assert set(found.models) == {f"m{model}" for model in range(12)}
    assert found.questions == {"curated": 30, "full": 90}
    rho = found.agreements["curated", "full"][0]
    assert rho.value is not None
    assert rho.over_models is not None
    assert rho.over_questions is not None
    assert rho.value > 0.9
    assert rho.over_questions[0] <= rho.value <= rho.over_questions[1]
    assert not found.gains[0].is_resolved
    assert found.needed is None or found.needed > 12
    whole = read_score_table(scores(tmp_path / "w.csv", 12, 1, by_question=False))
    mixed = compare(read_score_table(curated), whole).agreements["curated", "full"][0]
    assert mixed.value == pytest.approx(rho.value)
    alone = compare(whole, human=people).agreements["curated", "people"][0]
    assert (alone.over_questions, alone.models) == (None, 12)


def test_the_score_on_the_curated_benchmark_is_the_mean_of_its_dimensions(tmp_path: Path) -> None:
    file = table(
        tmp_path / "s.csv", "model,question_id,scene,dimension,score",
        *(f"{model},q{number},,{'A' if number else 'B'},{int(number < right)}"
          for model, right in (("a", 1), ("b", 3), ("c", 4)) for number in range(4)),
    )  # fmt: skip
    found = compare(read_score_table(file), read_score_table(file))
    assert found.models == ("c", "b", "a")
    assert found.columns["curated"] == pytest.approx([1.0, (1 + 2 / 3) / 2, 0.5])
    assert found.columns["full"] == pytest.approx([1.0, 0.75, 0.25])


@pytest.mark.parametrize(
    ("header", "rows", "sentence"),
    [
        ("model,score", ["a,1", "a,2"], "model 'a' stands twice"),
        ("model,score", [], "has no score"),
        ("model,score", ["a,high"], "line 2: score is 'high'"),
        ("model,question_id,score", ["a,q,1", "a,q,1"], "'a' has two scores of question 'q'"),
        ("model,question_id,score", ["a,q,1", "b,p,1"], "no question has a score of every model"),
        ("model,question_id,scene,score", ["a,q,s,1", "b,q,t,1"], "question 'q' has two scenes"),
        ("model,points", ["a,1"], "column 'score' is missing"),
    ],
)
def test_wrong_scores_are_refused(tmp_path: Path, header: str, rows: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_score_table(table(tmp_path / "s.csv", header, *rows))


def test_the_folder_of_an_evaluation_is_a_table_of_scores(tmp_path: Path) -> None:
    questions = pool(4).questions
    rows = [
        ScoredAnswer(f"m{model}", question, "Colour", "", None if (model, number) == (0, 3) else float(number >= model))
        for model in range(3)
        for number, question in enumerate(questions)
    ]
    write_predictions(rows, tmp_path)
    read = read_score_table(tmp_path)
    assert read.models == ("m0", "m1", "m2")
    assert read.values.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert (read.scenes, set(read.dimensions), read.left_out) == (("scene 0", "scene 0", "scene 1"), {"Colour"}, 1)
    with pytest.raises(InputError, match=r"has no predictions\.parquet"):
        read_score_table(tmp_path / "..")


def test_a_question_that_one_model_has_no_score_of_is_left_out(tmp_path: Path) -> None:
    read = read_score_table(table(tmp_path / "s.csv", "model,question_id,score", "a,q,1", "b,q,0", "a,p,1"))
    assert (read.values.tolist(), read.left_out) == ([[1.0], [0.0]], 1)
    with pytest.raises(InputError, match="at least 3 models that all tables have, not 2"):
        compare(read, read)
    with pytest.raises(InputError, match="nothing to compare"):
        compare(read)


def test_the_commands(tmp_path: Path) -> None:
    folder = tmp_path / "curation"
    write_pool(pool(50), folder)
    write_assignment(ASSIGNED, folder / "assignments.parquet")

    def run(*words: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["curate", *map(str, words)], catch_exceptions=False)
        return result.exit_code, result.stdout

    sheet = tmp_path / "sheet.csv"
    code, told = run("sheet", folder, "--out", sheet, "--per-dimension", 20)
    assert (code, told.split()[0]) == (0, "40")
    filled = []
    for rater in ("ann", "bob"):
        rows = list(csv.DictReader(sheet.read_text().splitlines()))
        for place, row in enumerate(rows):
            row |= {"rater": rater, "verdict": "no" if place % 3 else "yes"}
        filled.append(tmp_path / f"{rater}.csv")
        with filled[-1].open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    code, told = run("agreement", *filled, "--assignments", folder)
    assert code == 0
    assert [line.split(":")[0] for line in told.splitlines()] == [*NAMES, "all", "mean of the dimensions' kappas"]
    assert "raters 1.00 no interval (Fleiss, 20 questions)" in told
    human = ratings(tmp_path / "r.csv", *(f"m{model},home,ann,planning,{5 - model % 5}" for model in range(12)))
    curated, full = scores(tmp_path / "c.csv", 12, 3), scores(tmp_path / "f.csv", 12, 1)
    code, told = run("ranking", curated, "--full", full, "--human", human)
    assert code == 0
    assert "curated and full: Spearman's rho 0.9" in told
    assert "over questions" in told
    assert "curated and people: Spearman's rho" in told
    assert "gain in Spearman's rho with people, curated less full" in told
    assert "not resolved" in told
    assert "a gain of 0.02 in Spearman's rho would take" in told
