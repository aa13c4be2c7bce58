"""Reading configuration: YAML checked against a pydantic model, every refusal with its line and the valid choices."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from merton.errors import InputError

MAX_BYTES = 1_000_000
MAX_DEPTH = 50


class Model(BaseModel):
    """Base of every configuration model: unknown keys are errors, values are not changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


ModelType = TypeVar("ModelType", bound=BaseModel)


def load(path: Path, model: type[ModelType]) -> ModelType:
    """Read the YAML file at `path` as `model`.

    Raises:
        InputError: unreadable, not YAML, aliases (a few lines can expand to gigabytes), a duplicate or unknown key,
            or a value the model refuses; the text names file, line, key and what would be right.
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
    try:
        return model.model_validate(_plain(tree))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(_sentence(name, tree, model, first, len(error.errors()))) from None


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


def _sentence(name: str, tree: CommentedMap, model: type[BaseModel], error: Any, count: int) -> str:
    """One sentence for pydantic's first error: file, line, key, what is wrong, what is right."""
    location = tuple(part for part in error["loc"] if not isinstance(part, str) or not part.startswith("function-"))
    key = ".".join(str(part) for part in location) or "the file"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        choices = _fields_at(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), choices, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        message = f"unknown key; {hint}valid keys are: {', '.join(choices)}"
    elif error["type"] == "missing":
        message = "is missing"
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"{name}, line {_line(tree, location)}: {key}: {message}{more}"


def _line(tree: Any, location: tuple[Any, ...]) -> int:
    line, node = 1, tree
    for part in location:
        try:
            position = node.lc.key(part) if isinstance(node, CommentedMap) else node.lc.item(part)
            line, node = position[0] + 1, node[part]
        except (KeyError, IndexError, AttributeError, TypeError):
            break
    return line


def _fields_at(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """Names of the fields of the nested model that `location` leads to."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        annotation = current.model_fields[part].annotation
        arguments = [annotation, *getattr(annotation, "__args__", ())]
        current = next((a for a in arguments if isinstance(a, type) and issubclass(a, BaseModel)), current)
    return list(current.model_fields)
