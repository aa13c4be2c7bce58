"""Slots: negation, colour and place count in full, word order and the grammar's synonyms not at all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.cognition.slots import Mention, mentions, slots, slots_batch
from merton.errors import InputError
from merton.world.nouns import COLORS, PLACES, SHAPES, VARIED_SHAPES
from merton.world.tasks import TASKS, action_words, example_of, kinds_of_things

SENTENCES = st.lists(
    st.sampled_from(["the", "red", "blue", "cup", "mat", "left", "far", "not", "no", "push", "it", "turn", ",", "."]),
    max_size=12,
).map(" ".join)


def mention(word: str, *attributes: str, negated: bool = False) -> Mention:
    return Mention(word, frozenset(attributes), negated)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Red cup far left, beside blue mat.", {mention("cup", "red", "far", "left"), mention("mat", "blue")}),
        ("the left red cube", {mention("cube", "left", "red")}),
        ("On the far-left is a red cup", {mention("cup", "red", "far", "left")}),
        ("turn it left", {mention("twist", "left")}),
        ("Pick up the red cube. The cube is near.", {mention("pick"), mention("cube", "red", "near")}),
        ("The cup isn't visible, the mat is.", {mention("cup", negated=True), mention("mat")}),
        ("reach the cup, not the mug", {mention("reach"), mention("cup"), mention("mug", negated=True)}),
        ("No large blue bottle visible", {mention("bottle", "large", "blue", negated=True)}),
        ("The robot CANNOT reach two cups", {mention("reach", negated=True), mention("cup")}),
        ("red", {mention("", "red")}),
        ("No.", {mention("", negated=True)}),
        ("yes, of course", set()),
    ],
)
def test_the_mentions_of_an_answer(text: str, wanted: set[Mention]) -> None:
    assert mentions(text) == wanted


@pytest.mark.parametrize("color", COLORS[1:])
@pytest.mark.parametrize("kind", ["cube", "mug", "knob", "bowl", "mat"])
def test_a_wrong_colour_is_another_thing(kind: str, color: str) -> None:
    assert slots(f"a red {kind}", f"a {color} {kind}") == 0.0
    assert slots(f"pick up the red {kind}", f"pick up the {color} {kind}") == 1 / 3


@pytest.mark.parametrize("verb", sorted(TASKS))
def test_an_instruction_and_its_opposite(verb: str) -> None:
    said = example_of(TASKS[verb]).instruction
    assert slots(said, said.upper() + "!") == 1.0
    assert slots(said, f"do not {said}") < 0.7
    assert mention(verb) in mentions(said) or any(found.word == verb for found in mentions(said))


@pytest.mark.parametrize("one", PLACES)
def test_another_place_is_another_thing(one: str) -> None:
    for other in {*PLACES, "center", "middle"} - {one}:
        assert slots(f"red cup {one}", f"red cup {other}") == 0.0
    assert slots("red cube far right", "red cube far left") == 0.0
    assert slots("red cup centre", "red cup center") == 1.0


def test_colours_that_change_places_are_seen() -> None:
    assert slots("red cup on the blue mat", "blue cup on the red mat") == 0.0
    assert slots("red cup on the blue mat", "the blue mat is under the red cup") == 1.0


def test_the_grammar_knows_its_verbs_and_their_synonyms() -> None:
    known = action_words()
    assert {known[word] for word in ("turn", "turned", "twisting", "twists")} == {"twist"}
    assert (known["lift"], known["tilting"], known["placed"]) == ("pick", "pour", "place")
    assert known["grasp"] == "grasp", "it is a step of many plans"
    assert {*SHAPES, *VARIED_SHAPES, "mat", "cup", "knob", "drawer"} <= set(kinds_of_things())
    assert slots("Twist the green knob to the left.", "Turn the green knob left.") == 1.0


def test_a_thing_more_costs_as_much_as_one_less() -> None:
    assert slots("red cup", "red cup, blue mat") == slots("red cup, blue mat", "red cup") == 0.5
    assert slots("red cup", "I do not know") == 0.0
    assert slots("yes", "certainly") is None
    found = slots_batch(["yes", "red cup"], ["certainly", "red cup"])
    assert math.isnan(found[0])
    assert found[1] == 1.0
    with pytest.raises(InputError, match="must be text"):
        mentions(3)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(SENTENCES, SENTENCES)
def test_it_is_a_share_and_symmetric(one: str, other: str) -> None:
    value = slots(one, other)
    assert value == slots(other, one)
    assert value is None or 0.0 <= value <= 1.0
    assert slots(one, one) in (None, 1.0)


def test_a_clause_ends_alike_in_capitals_and_at_every_dash() -> None:
    text = "The cup is not visible but the mug is on the mat"
    assert mentions(text) == mentions(text.upper())
    assert mentions(text) == mentions(text.replace("but", "\u2014")) == mentions(text.replace("but", "-"))
