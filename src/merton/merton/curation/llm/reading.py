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
_SHOWN = 60


def parsed(text: str, schema: type[ModelType]) -> ModelType:
    """An answer as a `schema`.

    Reasoning and end tokens are passed over as in every answer (`merton.cognition.final_answer`); the object may stand
    in a code fence or a wrapper, and text around it is passed over too.

    Raises:
        InputError: no JSON object, one that the schema refuses, NaN or infinity, or an answer beyond `LONGEST`; one
            sentence that the model can be told.
    """
    if len(text) > LONGEST:
        raise InputError(f"the answer has {len(text)} characters, more than {LONGEST}")
    text = without_reasoning(text)
    if not text.startswith("{") and (fenced := _FENCED.search(text)):
        text = fenced[1].strip()
    start = text.find("{")
    if start < 0:
        raise InputError(f"the answer has no JSON object; it begins: {text[:_SHOWN]!r}")
    try:
        value, _ = _DECODER.raw_decode(text, start)
        content = json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
    except (ValueError, RecursionError) as error:
        raise InputError(f"the JSON of the answer cannot be read: {str(error)[:200]}") from None
    return validated(schema, content, "the answer")


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refused)
