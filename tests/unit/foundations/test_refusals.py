"""No words of pydantic reach a user: every kind of error that a configuration model raises has a sentence of ours."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from merton import config
from merton.config import Model, refusal

MODULES = ("experiment.plan", "models.catalogue", "cognition.models.base", "decision.models.base", "graph.spec")
MODULES += ("world.cell", "web.access", "leaderboard.submissions.manifest", "leaderboard.published.taxonomy")
VALUES: tuple[Any, ...] = (
    *(None, True, 2.5, -1e30, 1e30, -(10**30), 10**30, math.nan, math.inf, "", "x" * 10_000, "\ud800"),
    *((), ("",), ("x",) * 30, (None,), (1.5,) * 3, ((),), {}, {"x": 1}, ({"x": 1},), ({},), {1: 2}, object()),
)
PHRASES = ("Input should", "Value error", "String should", "Field required", "Extra inputs", "Assertion", "valid ")
PHRASES += ("tuple", "dictionary", "instance", "NoneType", "is not valid: got", "{")


def models(base: type[Model] = Model) -> Iterator[type[Model]]:
    """Every configuration model of the modules."""
    for name in MODULES if base is Model else ():
        importlib.import_module(f"merton.{name}")
    for model in base.__subclasses__():
        if model.__module__.startswith("merton."):
            yield model
            yield from models(model)


def test_no_words_of_pydantic_reach_a_user() -> None:
    kinds: set[str] = set()
    found = list(models())
    assert len(found) >= 10
    for model in found:
        adapter: TypeAdapter[Model] = TypeAdapter(model)
        for value in VALUES:
            for data in (value, {"surplus": 1}, *({name: value} for name in model.model_fields)):
                try:
                    adapter.validate_python(data)
                except ValidationError as error:
                    faults = error.errors(include_url=False)
                    for fault in faults:
                        kinds.add(fault["type"])
                        own = fault["type"] == "value_error"
                        text = refusal(fault)
                        assert text, fault
                        assert own or not any(phrase in text for phrase in PHRASES), (model, fault["type"], text)
    assert {"missing", "extra_forbidden", "tuple_type", "too_short", "int_type", "literal_error"} <= kinds, kinds


def test_a_kind_of_error_that_is_new_is_shown_without_its_own_words() -> None:
    fault = {"type": "unheard_of", "loc": ("a",), "msg": "Input should be heard of", "input": 3}
    assert refusal(fault) == "is not valid: got 3"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "nothing"), (True, "true"), (2.5, "2.5"), ((1,), "a list"), ({"a": 1}, "a mapping"), ("a", "the text 'a'")],
)
def test_a_refused_value_is_shown_in_words(value: object, shown: str) -> None:
    assert config.refusal({"type": "int_type", "loc": (), "input": value}) == f"must be a whole number, got {shown}"
