"""Statistics of studies with people: as computed independently, careless raters found, and what is missing is said."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import planted_ratings as planted
import pytest

from merton.errors import InputError
from merton.statistics.alpha import krippendorff_alpha
from merton.statistics.intraclass import intraclass
from merton.statistics.raters import fleiss_kappa
from merton_studies.people.project import Project
from merton_studies.people.ratings import independent, ratings_of
from merton_studies.people.screening import screen
from merton_studies.people.statistics import Missing, agreement_of, summary

PLAIN = planted.Plain()


def project(**settings: object) -> Project:
    made = {"name": "plain", "title": "Plain", "protocol": "quality", "items": {"images": {"folder": "x"}}, "raters": 5}
    return Project.model_validate({**made, **settings})


def test_a_rating_for_each_value_and_none_for_a_review() -> None:
    things = planted.items(3)
    said = planted.answers({"R01": [1, 2, 3]}) + planted.answers({"E01": [1, None, None]}, "review")
    found = ratings_of(things, PLAIN, said)
    assert [(one.item, one.rater, one.criterion, one.value) for one in found] == [
        (f"i000{place}", "R01", "score", place + 1.0) for place in range(3)
    ]
    with pytest.raises(InputError, match="R01 answered an item 'i0003'"):
        ratings_of(things, PLAIN, planted.answers({"R01": [1, 2, 3, 4]}))


def test_agreement_is_of_independent_ratings_only() -> None:
    table = planted.graded(40, 4, 1)
    things = planted.items(40, 2)
    plain = planted.answers(table)
    more = [
        *plain,
        *planted.answers({"R01": [5.0] * 40}, "repeat", 100),
        *planted.answers({"R05": [1.0] * 40}, "top_up"),
        *planted.answers({"R06": [1.0] * 40}, "gold"),
    ]
    used = independent(ratings_of(things, PLAIN, more))
    assert used == ratings_of(things, PLAIN, plain)
    found = agreement_of(used, "score", "ordinal", seed=3)
    rows, scenes = [list(row) for row in zip(*table.values(), strict=True)], [item.scene for item in things]
    assert found.alpha == krippendorff_alpha(rows, "ordinal", scenes, 3)
    named = [dict(zip(table, row, strict=True)) for row in rows]
    assert found.intraclass == intraclass(named, scenes, 3)  # type: ignore[arg-type]
    assert (found.ratings, found.alpha.n, found.alpha.clusters) == (160, 40, 20)
    assert len(found.pairs) == 6
    assert found.mean == pytest.approx(np.mean(rows))
    words = [["odd" if int(v) % 2 else "even" for v in row if v is not None] for row in rows]
    of_words = agreement_of(independent(ratings_of(things, planted.Words(), more)), "word", "nominal", seed=3)
    assert of_words.fleiss == fleiss_kappa(words, scenes, 3)
    assert dict(of_words.counts) == {name: sum(row.count(name) for row in words) for name in ("even", "odd")}


def test_too_little_is_said_with_how_many_are_missing() -> None:
    few = agreement_of(
        ratings_of(planted.items(12, 4), PLAIN, planted.answers(planted.graded(12, 3, 1))), "score", "ordinal"
    )
    assert few.missing == Missing(18, 17)
    assert few.missing.shown == "not enough yet: 18 more items with two ratings, 17 more scenes"
    assert Missing(1, 0).shown == "not enough yet: 1 more item with two ratings"
    enough = planted.answers(planted.graded(40, 3, 1))
    assert not agreement_of(ratings_of(planted.items(40), PLAIN, enough), "score", "ordinal").missing
    assert agreement_of([], "score", "ordinal").alpha.value is None


@pytest.mark.parametrize("protocol", [PLAIN, planted.Words()], ids=["numbers", "words"])
def test_careless_raters_are_found_and_careful_ones_are_not(protocol: planted.Plain) -> None:
    table = planted.graded(80, 6, 2, noise=0.35)
    rng = np.random.default_rng(0)
    table["R07"] = rng.integers(1, 6, 80).tolist()
    table["R08"] = [4.0] * 80
    found = screen(ratings_of(planted.items(80), protocol, planted.answers(table)), protocol.criteria)
    assert [one.rater for one in found if one.careless] == ["R07", "R08"]
    assert [one.rater for one in found if one.constant] == ["R08"]
    assert found[0].with_others.n == 80
    if protocol is PLAIN:
        own = np.array(table["R01"], float)
        others = np.mean([row for name, row in table.items() if name != "R01"], axis=0)  # type: ignore[arg-type]
        assert found[0].with_others.value == pytest.approx(float(np.corrcoef(own, others)[0, 1]))


def test_a_rater_is_careless_only_if_nothing_speaks_for_care() -> None:
    """A rater who guesses at every other of many items agrees better than chance, and is not marked: a known limit."""
    table = planted.graded(400, 5, 4)
    guessed = np.random.default_rng(1).integers(1, 6, 400).tolist()
    table["R06"] = [
        guess if place % 2 else own for place, (guess, own) in enumerate(zip(guessed, table["R01"], strict=True))
    ]
    for items, careful in ((400, True), (6, False)):
        some = {name: row[:items] for name, row in table.items()}
        *_, last = screen(ratings_of(planted.items(items), PLAIN, planted.answers(some)), PLAIN.criteria)
        assert not last.careless
        assert last.with_others.interval is not None
        assert (last.with_others.interval[0] > 0.0) == careful


def test_a_lenient_rater_has_a_bias_and_is_not_careless() -> None:
    table = planted.graded(60, 4, 3)
    table["R05"] = [min(score + 1.0, 9.0) for score in table["R01"] if score is not None]
    *_, last = screen(ratings_of(planted.items(60), PLAIN, planted.answers(table)), PLAIN.criteria)
    (bias,) = last.biases
    gaps = [
        own - math.fsum(row) / 4
        for own, *row in zip(table["R05"], *(table[f"R0{place}"] for place in range(1, 5)), strict=True)
    ]  # type: ignore[arg-type]
    assert bias.mean == pytest.approx(float(np.mean(gaps)))
    assert bias.interval == pytest.approx(  # each item is a scene: Student's interval of the mean
        tuple(np.mean(gaps) + side * 2.000995 * np.std(gaps, ddof=1) / math.sqrt(60) for side in (-1, 1)), abs=1e-5
    )
    assert not last.careless


@pytest.mark.parametrize(("pairs", "rejected"), [(2, False), (3, True)])
def test_the_rejection_of_bt_500(pairs: int, rejected: bool) -> None:
    """Fourteen say 3, but for some pairs that say 2 and 4; the fifteenth says 5 and 1 in turn.

    By hand: of two pairs the kurtosis is 4.16, so that 2.51 standard deviations are not enough; of three it is 2.97,
    and 2.24 are.
    """
    table: dict[str, list[float | None]] = {f"R{place:02}": [3.0] * 40 for place in range(1, 15)}
    for place in range(pairs):
        table[f"R{2 * place + 1:02}"], table[f"R{2 * place + 2:02}"] = [2.0, 4.0] * 20, [4.0, 2.0] * 20
    table["R15"] = [5.0, 1.0] * 20
    found = screen(ratings_of(planted.items(40), PLAIN, planted.answers(table)), PLAIN.criteria)
    rejection = found[-1].rejection
    assert rejection is not None
    assert (rejection.above, rejection.below, rejection.n) == ((20, 20, 40) if rejected else (0, 0, 40))
    assert [one.rejection is not None and one.rejection.rejected for one in found] == [False] * 14 + [rejected]
    table["R15"] = [5.0] * 40
    *_, high = screen(ratings_of(planted.items(40), PLAIN, planted.answers(table)), PLAIN.criteria)
    assert high.rejection is not None
    assert (high.rejection.above, high.rejection.rejected) == (40 * rejected, False)  # on one side alone: a bias


def test_the_rejection_needs_six_ratings_of_an_item() -> None:
    for raters, possible in ((5, False), (6, True)):
        found = screen(
            ratings_of(planted.items(20), PLAIN, planted.answers(planted.graded(20, raters, 1))), PLAIN.criteria
        )
        assert all(one.rejection is not None and one.rejection.possible is possible for one in found)


def test_the_summary_of_a_study() -> None:
    things = (*planted.items(40, 2), planted.items(41)[-1])
    things = (*things[:-1], replace(things[-1], gold={"score": 5, "word": "odd"}))
    table = planted.graded(40, 4, 1)
    table["R04"][0] = None
    hasty = [replace(one, seconds=0.1) for one in planted.answers({"R05": [3.0] * 40})]
    said = [
        *planted.answers(table),
        *hasty,
        *planted.answers({name: [None] * 40 + [5.0] for name in table}, "gold", 60),
        *planted.answers({"R05": [None] * 40 + [1.0]}, "gold", 60),
        *planted.answers({"R01": [(table["R01"][place] or 0.0) for place in range(4)]}, "repeat", 80),
    ]
    study = project(ratings=5, seed=7)
    found = summary(study, things, PLAIN, said, "abc")
    assert (found.items, found.gold_items, found.complete, found.wanted) == (40, 1, 39, 1)
    assert found.answers == len(said) == 208
    raters = {one.rater: one for one in found.raters}
    own = raters["R01"].care
    assert (own.repeats, own.repeats_alike, own.gold_right, own.gold, own.hasty, own.answers) == (4, 1.0, 1, 1, 0, 45)
    assert raters["R01"].seconds == 3.0
    first, *_, last = raters["R05"].marks
    assert first.startswith("40 of 41 answers took less than 0.3 s")  # a rule of the project
    assert last == "always the same answer"
    (one,) = found.agreements
    assert one.without_careless is not None
    rest = [[row[place] for row in table.values()] for place in range(40)]
    scenes = [item.scene for item in things[:40]]
    assert one.without_careless == krippendorff_alpha(rest, "ordinal", scenes, 7)
    again = summary(study, things, PLAIN, list(reversed(said)), "abc")
    assert again.as_json() == found.as_json()
    told = json.loads(found.as_json())
    assert told["agreements"][0]["alpha"]["value"] == one.alpha.value
    assert told["agreements"][0]["missing"]["sentence"] == ""
    assert (told["definition_sha256"], told["seed"]) == ("abc", 7)


def test_agreement_is_split_by_the_groups_that_items_have() -> None:
    things = [replace(item, facts={"dimension": "depth" if place % 2 else "count", "model": "m"})
              for place, item in enumerate(planted.items(40))]  # fmt: skip
    said = planted.answers(planted.graded(40, 3, 1))
    found = summary(project(), things, PLAIN, said)
    assert [(one.group, one.alpha.n) for one in found.groups] == [("dimension: count", 20), ("dimension: depth", 20)]
    assert (
        found.groups[0].alpha
        == agreement_of(
            [one for one in ratings_of(things, PLAIN, said) if int(one.item[1:]) % 2 == 0], "score", "ordinal"
        ).alpha
    )


def test_a_study_without_answers_has_a_summary() -> None:
    found = summary(project(), planted.items(3), PLAIN, [])
    assert (found.complete, found.wanted, found.raters) == (0, 9, ())
    assert found.agreements[0].missing == Missing(30, 20)
    assert json.loads(found.as_json())["agreements"][0]["alpha"]["value"] is None
