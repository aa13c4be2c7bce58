"""Data from outside checked against a pydantic model: every refusal is one sentence with the line and the choices."""

from __future__ import annotations

import difflib
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from merton.errors import InputError

MAX_BYTES = 1_000_000
MAX_DEPTH = 50


class Model(BaseModel):
    """Base of every configuration model: unknown keys are errors, and a model is never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


ModelType = TypeVar("ModelType", bound=BaseModel)
Checked = TypeVar("Checked")


def validated(
    model: type[Checked] | TypeAdapter[Checked], data: Any, where: str, tree: CommentedMap | None = None
) -> Checked:
    """`data` as a `model`.

    Args:
        model: a pydantic model, or the adapter of any other type.
        data: plain Python values; bytes and texts are JSON.
        where: the file or other source of the data; the error text begins with it.
        tree: the YAML of the data, if they are from a file; the error text then has the line.

    Raises:
        InputError: the model refuses a value; the text names the first, the valid choices, and the number of others.
    """
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        if isinstance(data, bytes | str):
            return adapter.validate_json(data, strict=True)
        return adapter.validate_python(data)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InputError(f"{_sentence(where, tree, model, faults[0])}{more}") from None


def load(path: Path, model: type[ModelType]) -> ModelType:
    """Read the YAML file at `path` as `model`.

    Raises:
        InputError: an unreadable file, no YAML, aliases (a few lines can expand to gigabytes), a duplicate or unknown
            key, or a value the model refuses; the text names file, line, key and the valid choices.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return loads(text, model, str(path))


def loads(text: str, model: type[ModelType], name: str = "configuration") -> ModelType:
    """Like `load`, from a string; `name` stands for the file in error texts."""
    if len(text) > MAX_BYTES:
        raise InputError(f"{name}: larger than {MAX_BYTES} bytes")
    yaml = YAML(typ="rt", pure=True)
    try:
        depth = 0
        for token in yaml.scan(text):
            kind, line = type(token).__name__, token.start_mark.line + 1
            if kind in ("AliasToken", "TagToken"):
                raise InputError(f"{name}, line {line}: aliases and tags are not allowed; write the value out")
            depth += kind.endswith("StartToken") - kind.endswith("EndToken")
            if depth > MAX_DEPTH:
                raise InputError(f"{name}, line {line}: nested deeper than {MAX_DEPTH} levels")
        tree = yaml.load(text)
    except InputError:
        raise
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{name}, line {line}: {error.problem or error}") from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{name}: {str(error).splitlines()[0]}") from None
    if not isinstance(tree, CommentedMap):
        raise InputError(f"{name}: must be a mapping with the keys {', '.join(model.model_fields)}")
    return validated(model, _plain(tree), name, tree)


def dumps(values: Any, width: int = 4096) -> str:
    """Plain values as YAML in block style, keys in their order, lines of `width` characters where a text has spaces."""
    yaml, text = YAML(typ="safe", pure=True), StringIO()
    yaml.default_flow_style = yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = width
    yaml.dump(values, text)
    return text.getvalue()


def _plain(node: Any) -> Any:
    """ruamel's nodes as plain Python values, which strict validation expects."""
    if isinstance(node, CommentedMap):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return tuple(_plain(value) for value in node)
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _sentence(where: str, tree: CommentedMap | None, model: Any, fault: Any) -> str:
    """One sentence for a fault that pydantic found: file, line, key, fault and valid choices."""
    location = tuple(part for part in fault["loc"] if not isinstance(part, str) or not part.startswith("function-"))
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "missing":
        message = "is missing"
    elif fault["type"] == "extra_forbidden" and (choices := _fields_at(model, location[:-1])):
        near = difflib.get_close_matches(str(location[-1]), choices, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        message = f"unknown key; {hint}valid keys are: {', '.join(choices)}"
    if tree is not None:
        line, location = _place(tree, location)
        where = f"{where}, line {line}"
    key = ".".join(str(part) for part in location)
    return ": ".join(text for text in (where, key, message) if text)


def _place(tree: Any, location: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
    """Line of a location, and the location without the levels that a model puts between keys of the file."""
    line, node, in_file = 1, tree, []
    for depth, part in enumerate(location, 1):
        try:
            position = node.lc.key(part) if isinstance(node, CommentedMap) else node.lc.item(part)
            line, node = position[0] + 1, node[part]
        except (KeyError, IndexError, AttributeError, TypeError):
            if depth < len(location):
                continue
        in_file.append(part)
    return line, tuple(in_file)


def _fields_at(model: Any, location: tuple[Any, ...]) -> list[str]:
    """Names of the fields of the nested model that `location` leads to; none where that is no pydantic model."""
    current = model
    for part in location:
        field = getattr(current, "model_fields", {}).get(part)
        if field is not None:
            arguments = [field.annotation, *getattr(field.annotation, "__args__", ())]
            current = next((a for a in arguments if isinstance(a, type) and issubclass(a, BaseModel)), current)
    return list(getattr(current, "model_fields", ()))
