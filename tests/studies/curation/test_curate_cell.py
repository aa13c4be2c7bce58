"""The pool of questions of the cell: laws of the simulator's truth, the choice of facts, repetitions, same bytes."""

from __future__ import annotations

import hashlib
import string
from collections import Counter
from itertools import permutations
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("pyarrow")

from merton.errors import InputError, MertonError
from merton.simulation.varied import make_layout
from merton_studies.curation.cell import make_cell_pool
from merton_studies.curation.cell.acting import acting, changing
from merton_studies.curation.cell.arranging import arranged, table
from merton_studies.curation.cell.choosing import SHARES, TWIN_SHARE, Found, chosen, numbers_of
from merton_studies.curation.cell.fact import CellScene, Fact
from merton_studies.curation.cell.looking import looking
from merton_studies.curation.cell.measuring import measuring, placing
from merton_studies.curation.cell.pool import work_on_scene
from merton_studies.curation.cell.wording import wordings
from merton_studies.curation.pool import Pool, read_pool

pytestmark = pytest.mark.usefixtures("renders")  # the first test that needs the table draws it, whichever that is

QUESTIONS = 20


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# The simulator's truth ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scene(renders: None) -> CellScene:
    return arranged(table(), "test", 7, 0)[0]


@pytest.fixture(scope="module")
def facts(scene: CellScene) -> list[Fact]:
    rng = np.random.default_rng(0)
    found = list(changing(scene, rng))
    return found + [
        fact
        for shot in scene.shots
        for family in (looking, placing, measuring, acting)
        for fact in family(scene, shot, rng)
    ]


def test_counts_and_distances_are_those_of_the_scene(scene: CellScene, facts: list[Fact]) -> None:
    colors = Counter(item.color for item in scene.items.values())
    counted = {fact.subject: int(fact.answer) for fact in facts if fact.family == "count_colour"}
    assert counted == {color: colors[color] for color in counted}
    assert counted
    gaps = {tuple(sorted(fact.subject.split("/"))): float(fact.answer) for fact in facts if fact.family == "distance"}
    assert gaps
    places = {thing.name: thing.spot[:2] for thing in table().layout.things}
    fixed = {name for name, item in scene.items.items() if not item.loose and item.kind in ("socket", "knob", "mat")}
    for (one, other), gap in gaps.items():
        if {one, other} <= fixed:
            assert gap == pytest.approx(np.hypot(*np.subtract(places[one], places[other])), abs=0.002)


def test_a_relation_turns_round_with_its_things(scene: CellScene) -> None:
    from merton_studies.curation.cell.measuring import _two

    opposite = {"left": "right", "right": "left", "yes": "no", "no": "yes"}
    compared = 0
    for shot in scene.shots:
        for one, other in permutations(scene.named(shot), 2):
            there = {fact.family: fact.answer for fact in _two(shot, one, other)}
            back = {fact.family: fact.answer for fact in _two(shot, other, one)}
            assert {family: opposite.get(answer, answer) for family, answer in there.items()} == back
            compared += len(there)
    assert compared > 50


def test_an_outline_holds_the_pixels_of_its_thing(scene: CellScene) -> None:
    """The projection is checked against the drawing: a thing's colour fills the outline that is computed for it."""
    compared = 0
    for shot in scene.shots:
        for name, seen in shot.seen.items():
            if shot.shows(name, 0.95):
                area = cv2.contourArea(np.float32(seen.outline * (480, 300)))
                assert 0.45 * area < seen.pixels < 1.1 * area, name
                compared += 1
    assert compared >= len(scene.items)


def test_things_topple_where_friction_says() -> None:
    """A slow push at height h topples a thing of width w on friction mu if h > w / (2 mu): statics of what slides."""
    tabletop, along = table(), np.array([0.0, 1.0])
    tabletop.set_up("test", 1)
    for name in ("yellow cylinder", "red peg", "small yellow cube"):
        low, high = tabletop.extent(name)
        threshold = tabletop.spans_m(name)[0] / (2 * 0.6) / float(high[2] - low[2])
        for share in (threshold - 0.12, threshold + 0.1):
            assert tabletop.push(name, along, 0.05, share).fell == (share > threshold), (name, share)


# Facts to questions ---------------------------------------------------------------------------------------------------


def test_every_family_has_wordings_that_its_facts_fill(facts: list[Fact]) -> None:
    assert len({fact.family for fact in facts}) > 25
    for fact in facts:
        texts = wordings().families[fact.family]
        assert len(texts) >= 4
        for text in texts:
            assert {field for _, field, *_ in string.Formatter().parse(text) if field} <= set(fact.words)
    for dimension in SHARES:
        assert any(dimension in house.dimensions for house in wordings().sources)


def test_the_dimensions_are_as_lopsided_as_in_the_paper() -> None:
    counts = numbers_of(3000)
    assert sum(counts.values()) == 3000
    assert all(abs(counts[name] / 30 - share) < 0.05 for name, share in SHARES.items())


def _planted(dimension: str, number: int, answer: str) -> Found:
    fact = Fact(
        family=f"{dimension} {number % 2}", dimension=dimension, subject=str(number), answer_kind="yes_no",
        answer=answer, pictures=("a",), balance=answer,
    )  # fmt: skip
    return Found(f"test.{number % 7}", fact)


def test_answers_are_balanced_and_no_fact_is_asked_twice() -> None:
    """One family of each dimension has few a "no": it ends with them, and the other goes on."""

    def answer(number: int) -> str:
        return "no" if number % 40 == 0 or number % 4 == 1 else "yes"

    supply = [_planted(name, number, answer(number)) for name in SHARES for number in range(800)]
    originals, again = chosen([*supply, *supply], 500, seed=3)
    assert len(originals) + len(again) == 500
    assert len({one.key for one in originals}) == len(originals)
    for name in SHARES:
        answers = Counter(one.fact.answer for one in originals if one.fact.dimension == name)
        assert abs(answers["yes"] - answers["no"]) <= 2
    assert len(set(again)) == len(again) == pytest.approx(500 * TWIN_SHARE, abs=4)
    known = [one for one in supply if one.fact.family != "AffdFunc 0" or one.fact.answer == "yes"]
    assert "AffdFunc 0" not in {one.fact.family for one in chosen(known, 500, seed=3)[0]}
    with pytest.raises(MertonError, match="questions only, not 5000"):
        chosen(supply, 5000, seed=3)


def test_every_kind_is_offered_wrongly_too() -> None:
    from merton_studies.curation.cell.looking import _KINDS

    kinds = {
        thing.shape for split in ("test", "shift") for seed in range(9) for thing in make_layout(split, seed).things
    }
    assert kinds <= set(_KINDS)


# The pool -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool(renders: None, tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return make_cell_pool(tmp_path_factory.mktemp("cell") / "pool", QUESTIONS, workers=1)


def test_twins_repeat_a_question_that_is_there_in_other_words(pool: Pool) -> None:
    by_id = {question.id: question for question in pool.questions}
    twins = [question for question in pool.questions if question.twin_of]
    assert abs(len(twins) / QUESTIONS - TWIN_SHARE) < 0.08
    for twin in twins:
        first = by_id[twin.twin_of]
        assert not first.twin_of
        assert (twin.answer, twin.scene, twin.dimension, twin.media) == (
            first.answer, first.scene, first.dimension, first.media,
        )  # fmt: skip
        assert sorted(twin.choices) == sorted(first.choices)
        assert twin.text != first.text
    assert {question.source for question in pool.questions} == set(pool.sources)
    assert {medium.path for question in pool.questions for medium in question.media} == {
        f"media/{file.name}" for file in (pool.folder or Path()).joinpath("media").iterdir()
    }


def test_neither_interruptions_nor_the_order_of_scenes_change_a_byte(pool: Pool, tmp_path: Path) -> None:
    assert pool.folder is not None
    out = tmp_path / "pool"

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_cell_pool(out, QUESTIONS, on_progress=interrupt, workers=1)
    work_on_scene(out, "shift", 0, 0)  # the second scene first, as another process might
    (out / "media" / ".1.0.unfinished").write_bytes(b"killed")
    with pytest.raises(InputError, match="pool' holds an unfinished pool with other size"):
        make_cell_pool(out, QUESTIONS + 1, workers=1)
    made = make_cell_pool(out, QUESTIONS, workers=1)
    assert digests(out) == digests(pool.folder)
    assert make_cell_pool(out, QUESTIONS) == made == read_pool(out)


def test_other_folders_and_other_numbers_are_refused(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="neither empty nor an unfinished pool"):
        make_cell_pool(tmp_path, QUESTIONS)
    with pytest.raises(InputError, match="holds another pool"):
        make_cell_pool(pool.folder or tmp_path, QUESTIONS, seed=1)
    with pytest.raises(InputError, match="1 to 100,000 questions, got 0"):
        make_cell_pool(tmp_path / "new", 0)
