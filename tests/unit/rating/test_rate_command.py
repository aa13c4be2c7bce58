"""`merton rate`: its tables against the ratings they come from, its page, and newcomers whose skill is known."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.leaderboard.rate import examples, tail
from merton.leaderboard.rate.newcomers import read_newcomers
from merton.leaderboard.snapshot.compute import rate_both
from merton.rating import likelihood, placing
from merton.rating.checking import as_table, table_of
from merton.rating.predictions import predicted_score

AGENTS, CASES = 6, 40


def drawn(seed: int, skill: float | None = None) -> np.ndarray:
    """Scores, 0 or 1, of agents 100 points apart on cases 20 points apart; or of one more agent of that skill."""
    skills = 1250.0 + 100.0 * np.arange(AGENTS) if skill is None else np.array([skill])
    hardness = 1100.0 + 20.0 * np.arange(CASES)
    chance = 1.0 / (1.0 + 10.0 ** ((hardness - skills[:, None]) / 400.0))
    return (np.random.default_rng(seed).random(chance.shape) < chance).astype(float)


MATCHES = [(f"a{i}", f"c{j:02}", float(score)) for i, row in enumerate(drawn(3)) for j, score in enumerate(row)]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rate") / "scores.csv"
    rows = [["agent", *(f"c{j:02}" for j in range(CASES))], *([f"a{i}", *row] for i, row in enumerate(drawn(3)))]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def rate(*words: object) -> Result:
    result = CliRunner().invoke(app, ["rate", *map(str, words)])
    if isinstance(result.exception, InputError | UnknownNameError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_same_matrix_gives_the_same_page_and_tables(matrix: Path, tmp_path: Path) -> None:
    """Without an option: how ratings settle and the long tail, no newcomer."""
    for out in ("one", "two"):
        said = rate(matrix, "--shuffles", 2, "--out", tmp_path / out).stdout
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [
        "agents_by_share.csv",
        "cases.csv",
        "convergence.csv",
        "long_tail.csv",
        "ratings.html",
        "ratings.json",
    ]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert "target 99 %" in said
    page = (tmp_path / "one" / "ratings.html").read_text()
    assert all(f'id="{anchor}"' in page for anchor in ("convergence", "agents-by-share", "tail"))
    assert 'id="placed"' not in page
    assert page.count("<polyline") == 4 * 3 + 3 * AGENTS + 2  # four panels, A.3 by three methods, two distributions
    last = [row for row in rows_of(tmp_path / "one" / "agents_by_share.csv") if row["share"] == "1.0"]
    fitted = likelihood.fit(MATCHES)
    for row in last:
        if row["method"] == "likelihood":
            assert float(row["mean"]) == pytest.approx(fitted.agents[row["agent"]].mean, abs=1e-5)
    assert json.loads((tmp_path / "one" / "ratings.json").read_text())["about"]["orders"].startswith("2 random orders")


def test_the_long_tail_is_that_of_the_ratings() -> None:
    table = as_table(MATCHES)
    rated = rate_both(table)
    for found, ratings in zip(tail.long_tails(table, rated), (rated.likelihood, rated.agi_elo), strict=True):
        hardest = max(case.mean for case in ratings.cases.values())
        assert found.case_ratings[0][1] == found.quantiles[-1][1] == hardest
        oracles = [item for item in found.beyond if item.is_target]
        assert [item.shares[2 - place] for place, item in enumerate(oracles)] == [0.0, 0.0, 0.0]
        for item in found.beyond:
            for p, share in zip((0.5, 0.9, 0.99), item.shares, strict=True):
                below = [predicted_score(item.rating, case.mean) < p - 1e-12 for case in ratings.cases.values()]
                assert share == pytest.approx(np.mean(below))
        case = found.hardest[0]
        scores = {agent: score for agent, name, score in MATCHES if name == case.id}
        assert case.mean_score == pytest.approx(np.mean(list(scores.values())))
        assert set(case.solved_by) == {agent for agent, score in scores.items() if score >= 0.5}
        assert case.met == AGENTS


def test_a_newcomer_is_placed_as_if_it_had_been_rated_with_the_others(matrix: Path, tmp_path: Path) -> None:
    """Against known cases its rating is that of a fit of all, but for what its own scores change of the cases."""
    own = [("new", f"c{j:02}", float(score)) for j, score in enumerate(drawn(11, 1600.0)[0])]
    path = tmp_path / "new.csv"
    path.write_text("case,score\n" + "".join(f"{case},{score}\n" for _, case, score in own))
    said = rate(matrix, "--place", path, "--out", tmp_path / "out").stdout
    together = likelihood.fit([*MATCHES, *own]).agents["new"]
    placed = json.loads((tmp_path / "out" / "ratings.json").read_text())["placed"][0]
    assert placed["standing"]["mean"] == pytest.approx(together.mean, abs=together.deviation / 2)
    low, high = placed["standing"]["interval"]
    assert low < 1600.0 < high
    assert placed["places"][0] <= placed["standing"]["rank"] <= placed["places"][1] <= placed["of"] == AGENTS + 1
    predicted = rows_of(tmp_path / "out" / "predictions.csv")
    assert len(predicted) == CASES
    assert np.mean([float(row["predicted"]) for row in predicted]) == pytest.approx(placed["predicted"], abs=1e-6)
    assert placed["predicted_there"] == pytest.approx(placed["mean_score"], abs=0.03)
    assert said.startswith("new: rating ")
    assert not (tmp_path / "out" / "convergence.csv").exists()


def test_the_columns_of_a_newcomer_may_stand_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("score,case\n0.5,c00\n")
    assert read_newcomers(path) == ({"new": [("c00", 0.5)]}, ())


def test_what_is_left_out_of_a_matrix_of_newcomers_is_said(matrix: Path, tmp_path: Path) -> None:
    path = tmp_path / "others.csv"
    path.write_text("agent,c00,c01,c02,Average\nx,1,0.5,0,0.5\n")
    assert "Average sums up the other columns" in rate(matrix, "--place", path, "--out", tmp_path / "out").stderr


def test_a_folder_of_results_of_other_programs_is_rated(tmp_path: Path) -> None:
    for at, row in enumerate(drawn(3)[:, :8]):
        results = {f"c{case}": {"acc,none": score} for case, score in enumerate(row)}
        (tmp_path / "results").mkdir(exist_ok=True)
        (tmp_path / "results" / f"{at}.json").write_text(json.dumps({"model_name": f"a{at}", "results": results}))
    (tmp_path / "empty").mkdir()
    for words in (["rate", "--long-tail", "--out", tmp_path / "out"], ["leaderboard", "show"]):
        shown = CliRunner().invoke(app, [*map(str, words), str(tmp_path / "results")])
        assert (shown.exit_code, "a5" in shown.stdout) == (0, True), shown.output
        refused = CliRunner().invoke(app, [*map(str, words), str(tmp_path / "empty")])
        assert "there is no result store" in str(refused.exception)


def test_each_row_of_a_matrix_is_a_newcomer(matrix: Path, tmp_path: Path) -> None:
    path = tmp_path / "others.csv"
    path.write_text("agent,c00,c01,c02,c03\nx,1,0.5,,0\ny,1,1,1,1\n")
    rate(matrix, "--place", path, "--out", tmp_path / "out")
    x, y = json.loads((tmp_path / "out" / "ratings.json").read_text())["placed"]
    assert (x["id"], x["matches"], y["id"], y["matches"]) == ("x", 3, "y", 4)
    assert (y["standing"]["flag"], y["standing"]["interval"]) == ("only wins", None)
    assert "≥" in (tmp_path / "out" / "ratings.html").read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("case,score\nc00,1.5\n", "line 2: score is '1.5'; it must be a number from 0 to 1"),
        ("case,score\nelsewhere,1\n", "unknown test case 'elsewhere'"),
        ("case,score\nc00,1\nc00,0\n", "case 'c00' has two scores"),
        ("case,score\n", "at least one result"),
        ("agent,c00\na1,1\n", "agent 'a1' is on the board already"),
        ("name,c00\na1,1\n", "a newcomer is a table with the columns case and score, or the row of a response matrix"),
    ],
)
def test_what_cannot_be_placed_is_refused(matrix: Path, tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "new.csv"
    path.write_text(text)
    with pytest.raises((InputError, UnknownNameError), match=sentence):
        rate(matrix, "--place", path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_newcomers_interval_is_clustered_by_scene() -> None:
    """A newcomer that wins in one scene and loses in the other: two draws, not forty. One scene alone tells nothing."""
    names, skills = [f"c{j:02}" for j in range(CASES)], [a for a, _, _ in MATCHES]
    halves = {name: f"s{place % 2}" for place, name in enumerate(names)}
    fitted = likelihood.fit(table_of(skills, [c for _, c, _ in MATCHES], [s for *_, s in MATCHES], halves))
    own = [(name, float(place % 2)) for place, name in enumerate(names)]
    alone, pairs = placing.place(own, fitted), placing.place(own, fitted, halves)
    assert alone.mean == pairs.mean
    widths = [high - low for low, high in (alone.interval, pairs.interval)]
    assert widths[1] > 10.0 * widths[0]
    assert placing.place(own[::2], fitted, halves).interval is None


def test_an_empty_record_and_a_metric_of_a_matrix_are_refused(matrix: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a response matrix has one score a cell"):
        rate(matrix, "--metric", "success", "--out", tmp_path / "out")
    blank = tmp_path / "blank.csv"
    blank.write_text("agent,a\none,\n")
    with pytest.raises(InputError, match=r"blank\.csv has no scored trial and no imported score"):
        rate(blank, "--out", tmp_path / "out")


def test_a_file_in_the_place_of_the_folder_is_told_before_the_work(
    matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merton.leaderboard.snapshot.compute.rate_both", lambda *_: pytest.fail("the work had begun"))
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(InputError, match=r"is a file or lies in one: choose a folder$"):
            rate(matrix, "--out", out)


def test_a_record_says_what_its_scores_are_rated_by(matrix: Path, tmp_path: Path) -> None:
    """An imported matrix by its metric everywhere, never as trials by success."""
    record = tmp_path / "r.sqlite"
    for words in (("results", "import", record, matrix, "--source", "imagenet", "--metric", "acc_at_1"),):
        assert CliRunner().invoke(app, list(map(str, words))).exit_code == 0
    said = rate(record, "--long-tail", "--out", tmp_path / "out").stdout
    assert "Long tail by likelihood, of acc_at_1" in said
    assert "Long tail by AGI-Elo, of acc_at_1" in said
    assert json.loads((tmp_path / "out/ratings.json").read_text())["about"]["rated by"] == "acc_at_1"
    shown = CliRunner().invoke(app, ["leaderboard", "show", str(record), "--all"]).output
    assert "Leaderboard by acc_at_1" in shown
    assert "Rated by acc_at_1." in shown
    assert "success" not in shown
    assert (
        CliRunner().invoke(app, ["leaderboard", "build", str(record), "--out", str(tmp_path / "site")]).exit_code == 0
    )
    for page in ("index", "methods", "submissions", "cases"):
        text = (tmp_path / f"site/{page}.html").read_text()
        assert not any(word in text for word in ("execution", "by success")), page


def test_a_negative_gap_is_explained() -> None:
    """The best agent is predicted above one half on the hardest case, which it failed: its gap is negative."""
    rows = [(f"a{place}", f"c{case:02}", float(case < 10 * place + 9)) for place in range(4) for case in range(40)]
    rows = [(agent, case, 0.0 if (agent, case) == ("a3", "c39") else score) for agent, case, score in rows]
    table = as_table(rows)
    for found in tail.long_tails(table, rate_both(table)):
        hardest = found.case_ratings[0]
        for item in found.beyond[3:]:
            told = [line for line in tail.negative_gaps(found) if f"of {item.name} to" in line]
            assert len(told) == any(gap.gap < 0 for gap in item.to_hardest)
            assert item.on_hardest == pytest.approx(predicted_score(item.rating, hardest[1]))
            own = [score for agent, case, score in rows if (agent, case) == (item.name, hardest[0])]
            assert item.scored == own[0]
            if told:
                assert f"scored {100 * own[0]:.0f} % there" in told[0]
    assert any(tail.negative_gaps(found) for found in tail.long_tails(table, rate_both(table)))


def test_examples_stand_at_the_level_of_their_case(matrix: Path, tmp_path: Path) -> None:
    """A picture and texts by id; the page has them, and each level counts its cases."""
    cv2.imwrite(str(tmp_path / "c30.png"), np.full((8, 8, 3), 200, np.uint8))
    lines = ["case,text,picture", "c00,How many cups?,", "c30,Where is the lid?,c30.png", "c99,not rated,"]
    (tmp_path / "cases.csv").write_text("\n".join(lines) + "\n")
    result = rate(matrix, "--examples", tmp_path / "cases.csv", "--out", tmp_path / "out")
    assert "1 example" in result.stderr
    numbers = json.loads((tmp_path / "out/ratings.json").read_text())
    ratings = dict(numbers["tails"][0]["case_ratings"])
    assert sum(level["cases"] for level in numbers["levels"]) == CASES
    shown = {item["id"]: level["low"] for level in numbers["levels"] for item in level["examples"]}
    assert shown == {case: 200 * math.floor(ratings[case] / 200) for case in ("c00", "c30")}
    page = (tmp_path / "out/ratings.html").read_text()
    assert "data:image/png;base64," in page
    assert "How many cups?" in page


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("case,text\nc00,one\nc00,two\n", "line 3: case 'c00' has an example before"),
        ("case,text\nc00,\n", "line 2: case 'c00' has neither a text nor a picture"),
        ("case,text\nx,one\n", "none of its cases is rated here"),
        ("case,picture\nc00,no.png\n", "no.png"),
        ("case,picture\nc00,cases.csv\n", "is no picture that a page shows"),
    ],
    ids=["twice", "empty", "unknown", "absent", "no-picture"],
)
def test_a_mistake_in_examples_is_one_sentence(matrix: Path, tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "cases.csv").write_text(lines)
    with pytest.raises(InputError, match=re.escape(said)):
        rate(matrix, "--examples", tmp_path / "cases.csv", "--out", tmp_path / "out")


def test_examples_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "c1.txt").write_text("Which is nearer?\n")
    (tmp_path / "c1.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "notes.md").write_text("left alone")
    found, unknown = examples.read_sources(tmp_path, {"c1", "c2"})
    assert (found, unknown) == ({"c1": examples.Source("Which is nearer?", tmp_path / "c1.jpg")}, 0)
