"""The JSON object in the answer of an LLM."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from merton.cognition.final_answer import without_reasoning
from merton.config import Model, validated
from merton.errors import InputError

ModelType = TypeVar("ModelType", bound=Model)

LONGEST = 200_000
"""The longest answer that is read, in characters [ours]: ten times what 4,096 tokens can be."""
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_OPENS = re.compile(r'\{\s*["}]')
_SHOWN = 60


def parsed(text: str, schema: type[ModelType]) -> ModelType:
    """An answer as a `schema`: the last of its `objects` that is one, further keys passed over.

    Raises:
        InputError: as `objects`, or the schema refuses all of them; one sentence that the model can be told.
    """
    found: ModelType | None = None
    refusal = InputError("the answer has no JSON object")
    for content in objects(text):
        known = {key: value for key, value in content.items() if key in schema.model_fields}
        try:
            found = validated(schema, json.dumps(known or content), "the answer")
        except InputError as error:
            refusal = error
    if found is None:
        raise refusal
    return found


def objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects in an answer, from the first to the last: a model may repeat the form before it fills it in.

    Reasoning and end tokens are passed over as in every answer (`merton.cognition.final_answer`); the objects may stand
    in a code fence or a wrapper, and text around them is passed over too, as are braces that begin no object.

    Raises:
        InputError: no JSON object, the last one breaks off, NaN or infinity, or an answer beyond `LONGEST`; one
            sentence that the model can be told.
    """
    if len(text) > LONGEST:
        raise InputError(f"the answer has {len(text)} characters, more than {LONGEST}")
    text = without_reasoning(text)
    fences = [fenced for fenced in _FENCED.findall(text) if "{" in fenced]
    if not text.startswith("{") and fences:
        text = fences[-1].strip()
    found: list[dict[str, Any]] = []
    fault: Exception | None = None
    place = text.find("{")
    if place < 0:
        raise InputError(f"the answer has no JSON object; it begins: {text[:_SHOWN]!r}")
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(text, place)
            json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
            found.append(value)
            fault = None
        except json.JSONDecodeError as error:
            end = max(error.pos, place + 1)
            fault = error if not found or _OPENS.match(text, place) else fault
        except (ValueError, RecursionError) as error:
            fault, end = error, len(text)
        place = text.find("{", end)
    if fault is not None:
        raise InputError(f"the JSON of the answer cannot be read: {str(fault)[:200]}")
    return found


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refused)
