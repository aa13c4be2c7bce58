"""Arrays in messages of msgpack: {"__ndarray__": true, "data", "dtype", "shape"}, with keys of text or of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from merton.models.serving import from_msgpack
from merton.proxy.pictures import Picture, in_array, walk
from merton.proxy.spans import Piece, Span, binary

PARTS = ("__ndarray__", "__npgeneric__", "data", "dtype", "shape")


def parts_of(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The parts of an array's form, with keys of text; those it has."""
    return {part: value[key] for part in PARTS for key in (part, part.encode()) if key in value}


def number_or_array(value: Any) -> Any:
    """A value of numbers as numpy has it: of openpi's form, of vla-eval's, or a list; as it is if it is none."""
    if not isinstance(value, dict):
        return value
    parts = {key: part.content if isinstance(part, Span) else part for key, part in parts_of(value).items()}
    parts = {key: part.decode() if key == "dtype" and isinstance(part, bytes) else part for key, part in parts.items()}
    try:
        return from_msgpack({key.encode(): part for key, part in parts.items()})
    except (ValueError, TypeError, KeyError, OverflowError):
        return value


def pictures_in(message: Any) -> list[Picture]:
    """The pictures in the arrays of a message that `merton.proxy.spans.read` has read."""
    return [
        one
        for path, value in walk(message)
        if "__ndarray__" in (parts := parts_of(value)) and (one := raw_picture(path, parts)) is not None
    ]


def raw_picture(path: tuple[str, ...], parts: Mapping[str, Any]) -> Picture | None:
    """The picture that the parts of an array hold; None if they hold none."""
    data, shape = parts.get("data"), parts.get("shape")
    if not isinstance(data, Span) or not is_shape(shape):
        return None
    if not is_bytes(parts.get("dtype")) or math.prod(shape) != data.end - data.offset:
        return None
    return in_array(path, shape, lambda: data.content, lambda content: piece_of(data, content))


def is_shape(shape: Any) -> TypeGuard[list[int]]:
    """Whether a value is the shape of an array."""
    return isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)


def is_bytes(dtype: Any) -> bool:
    """Whether a value names the type uint8."""
    text = dtype.decode("latin-1") if isinstance(dtype, bytes) else dtype
    try:
        return isinstance(text, str) and np.dtype(text) == np.uint8
    except TypeError:
        return False


def piece_of(span: Span, content: bytes) -> Piece:
    """The replacement of a binary part: its content alone where it has the length of before."""
    if len(content) == span.end - span.offset:
        return Piece(span.offset, span.end, content)
    return Piece(span.begin, span.end, binary(content))
