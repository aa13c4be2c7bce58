"""Data from outside checked against a pydantic model: every refusal is one sentence with the line and the choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, ValidationInfo
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from merton.errors import FileError, InputError, UnknownNameError, did_you_mean
from merton.files import refuse_folder

MAX_BYTES = 1_000_000
MAX_DEPTH = 50

_PATTERNS: dict[str, str] = {}
"""Patterns of texts, in words."""
_KINDS = {
    "a text": "string_type string_sub_type string_unicode invalid_key path_type",
    "a whole number": "int_type int_parsing int_parsing_size int_from_float",
    "a number": "float_type float_parsing decimal_type decimal_parsing",
    "a finite number": "finite_number",
    "true or false": "bool_type bool_parsing",
    "a list": "tuple_type list_type set_type frozen_set_type iterable_type",
    "a mapping": "dict_type mapping_type model_type model_attributes_type dataclass_type dataclass_exact_type",
    "left empty": "none_required",
}
_MUST_BE = {type_: kind for kind, types in _KINDS.items() for type_ in types.split()} | {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
"""The condition that a value must meet, by the type of pydantic's error and with its details."""
_MUST_HAVE = {
    "too_short": "at least {min_length} {entries}, got {actual_length}",
    "too_long": "at most {max_length} {entries}, got {actual_length}",
    "string_too_short": "at least {min_length} {characters}, got {got}",
    "string_too_long": "at most {max_length} {characters}, got {got}",
}
"""The length that a list or text must have, and the one that it has, by the type of pydantic's error."""


class Model(BaseModel):
    """Base of every configuration model: unknown keys are errors, and a model is never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def text_like(pattern: str, words: str) -> Any:
    """The constraint of a text that it matches a regular expression; error texts say so in `words`."""
    _PATTERNS[pattern] = words
    return Field(pattern=pattern)


def described_pattern(pattern: str) -> str:
    """The words of a pattern of `text_like`."""
    return _PATTERNS.get(pattern, f"the pattern {pattern}")


def one_of(kind: str, names: Callable[[], Collection[str]], hint: str = "") -> AfterValidator:
    """A constraint of a field: its value is one of the names, which an error lists.

    A validation context, a mapping of kinds, may know further names of this kind; `hint` as of `UnknownNameError`.
    """

    def check(value: str, info: ValidationInfo) -> str:
        if value not in (info.context or {}).get(kind, ()) and value not in names():
            raise UnknownNameError(kind, value, names(), hint)
        return value

    return AfterValidator(check)


class FaultError(ValueError):
    """A validator's refusal of a part of its value; `location` leads there: keys, and indices from 0."""

    def __init__(self, message: str, *location: str | int) -> None:
        super().__init__(message)
        self.location = location


ModelType = TypeVar("ModelType", bound=BaseModel)
Checked = TypeVar("Checked")


def validated(
    model: type[Checked] | TypeAdapter[Checked],
    data: Any,
    where: str,
    tree: CommentedMap | None = None,
    context: Mapping[str, Any] | None = None,
) -> Checked:
    """`data` as a `model`.

    Args:
        model: a pydantic model, or the adapter of any other type.
        data: plain Python values; bytes and texts are JSON.
        where: the file or other source of the data; the error text begins with it.
        tree: the YAML of the data, if they are from a file; the error text then has the line.
        context: kind to further names that `one_of` accepts.

    Raises:
        InputError: the model refuses a value; the text names the first, the valid choices, and the number of others.
    """
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        if isinstance(data, bytes | str):
            return adapter.validate_json(data, strict=True, context=context)
        return adapter.validate_python(data, context=context)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        for fault in faults:
            if isinstance(of_another := fault.get("ctx", {}).get("error"), FileError):
                raise of_another from None
        others = len({_place(tree, fault["loc"])[1] for fault in faults if not _same_value(tree, fault, faults[0])})
        more = f" (and {others} more)" if others else ""
        kind = InputError if tree is None else FileError
        raise kind(f"{_sentence(where, tree, model, faults[0])}{more}") from None


def read_text(path: Path, ending: str = ".yaml") -> str:
    """The content of a text file, line ends as they are.

    Raises FileError for an unreadable one, and for a folder, of which the text names a file with that ending.
    """
    refuse_folder(path, ending)
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} is not a text file") from None


def load(path: Path, model: type[ModelType], context: Mapping[str, Any] | None = None) -> ModelType:
    """Read the YAML file at `path` as `model`; `context` as of `validated`.

    Raises:
        FileError: an unreadable file, no YAML, aliases (a few lines can expand to gigabytes), a duplicate or unknown
            key, or a value the model refuses; the text names file, line, key and the valid choices.
    """
    return loads(read_text(path), model, str(path), context)


def loads(
    text: str, model: type[ModelType], name: str = "configuration", context: Mapping[str, Any] | None = None
) -> ModelType:
    """Like `load`, from a string; `name` stands for the file in error texts."""
    tree = tree_of(text, name)
    if not isinstance(tree, CommentedMap):
        raise FileError(f"{name}: must be a mapping with the keys {', '.join(model.model_fields)}")
    return validated(model, plain(tree), name, tree, context)


def tree_of(text: str, name: str) -> Any:
    """The nodes of a YAML text, with its comments, for `plain`; raises FileError as `load`."""
    if len(text) > MAX_BYTES:
        raise FileError(f"{name}: larger than {MAX_BYTES} bytes")
    yaml = YAML(typ="rt", pure=True)
    try:
        depth = 0
        for token in yaml.scan(text):
            kind, line = type(token).__name__, token.start_mark.line + 1
            if kind in ("AliasToken", "TagToken"):
                raise FileError(f"{name}, line {line}: aliases and tags are not allowed; write the value out")
            depth += kind.endswith("StartToken") - kind.endswith("EndToken")
            if depth > MAX_DEPTH:
                raise FileError(f"{name}, line {line}: nested deeper than {MAX_DEPTH} levels")
        return yaml.load(text)
    except FileError:
        raise
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FileError(f"{name}, line {line}: {error.problem or error}") from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise FileError(f"{name}: {str(error).splitlines()[0]}") from None


def dumps(values: Any, width: int = 4096) -> str:
    """Plain values as YAML in block style, keys in their order, lines of `width` characters where a text has spaces."""
    yaml, text = YAML(typ="safe", pure=True), StringIO()
    yaml.default_flow_style = yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = width
    yaml.dump(values, text)
    return text.getvalue()


def plain(node: Any) -> Any:
    """Nodes of YAML as plain Python values, lists as tuples, which strict validation expects."""
    if isinstance(node, CommentedMap):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return tuple(plain(value) for value in node)
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _sentence(where: str, tree: CommentedMap | None, model: Any, fault: Any) -> str:
    """One sentence for a fault that pydantic found: file, line, key, fault and valid choices."""
    location = tuple(part for part in fault["loc"] if not isinstance(part, str) or not part.startswith("function-"))
    message = refusal(fault)
    if fault["type"] == "extra_forbidden" and (choices := _fields_at(model, location[:-1])):
        message = f"unknown key; {did_you_mean(str(location[-1]), choices)}valid keys are: {', '.join(choices)}"
    location += getattr(fault.get("ctx", {}).get("error"), "location", ())
    if tree is not None:
        line, location = _place(tree, location)
        where = f"{where}, line {line}"
    return ": ".join(text for text in (where, _named(location), message) if text)


def _named(location: tuple[Any, ...]) -> str:
    """A location in words, entries counted from 1, such as "agents, entry 2, vla"."""
    words: list[str] = []
    for part in location:
        if isinstance(part, int):
            words.append(f"entry {part + 1}")
        elif words and not words[-1].startswith("entry "):
            words[-1] += f".{part}"
        else:
            words.append(str(part))
    return ", ".join(words)


def refusal(fault: Any) -> str:
    """The clause of an error text for a fault that pydantic found, without pydantic's own words."""
    kind, context, value = fault["type"], fault.get("ctx", {}), fault.get("input")
    details = {key: f"{detail:g}" if isinstance(detail, float) else detail for key, detail in context.items()}
    details["got"] = _shown(value)
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(context["error"])
    if kind == "json_invalid":
        return f"is not JSON: {context['error']}"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "string_pattern_mismatch":
        return f"must be {described_pattern(context['pattern'])}, got {_shown(value)}"
    if wanted := _MUST_HAVE.get(kind):
        one = 1 in (context.get("min_length"), context.get("max_length"))
        nouns = {"entries": "entry" if one else "entries", "characters": "character" if one else "characters"}
        return f"must have {wanted.format(**details, **nouns)}"
    if wanted := _MUST_BE.get(kind):
        near = did_you_mean(value, re.findall(r"'([^']*)'", wanted.format(**details))) if isinstance(value, str) else ""
        return f"must be {wanted.format(**details)}, got {_shown(value)}{f'; {near.rstrip()}' if near else ''}"
    return f"is not valid: got {_shown(value)}"


def _shown(value: Any) -> str:
    """A refused value in words, such as "a list"."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)[:60]
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple | set | frozenset) else f"{value!r}"[:60]


def _place(tree: Any, location: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """Line of a location, and the location without the levels that a model puts between keys of the file."""
    line, node, in_file = 1, tree, []
    for depth, part in enumerate(location, 1):
        try:
            position = node.lc.key(part) if isinstance(node, CommentedMap) else node.lc.item(part)
            line, node = position[0] + 1, node[part]
        except (KeyError, IndexError, AttributeError, TypeError):
            if tree is not None and (depth < len(location) or not isinstance(node, CommentedMap)):
                continue  # a branch of a union, or the like
        in_file.append(part)
    return line, tuple(in_file)


def _same_value(tree: CommentedMap | None, fault: Any, first: Any) -> bool:
    """Whether two faults are of one value, which may be refused as each of several types."""
    one, other = (_place(tree, part["loc"])[1] for part in (fault, first))
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _fields_at(model: Any, location: tuple[Any, ...]) -> list[str]:
    """Names of the fields of the nested model that `location` leads to; none where that is not a pydantic model."""
    current = model
    for part in location:
        field = getattr(current, "model_fields", {}).get(part)
        if field is not None:
            arguments = [field.annotation, *getattr(field.annotation, "__args__", ())]
            current = next((a for a in arguments if isinstance(a, type) and issubclass(a, BaseModel)), current)
    return list(getattr(current, "model_fields", ()))
