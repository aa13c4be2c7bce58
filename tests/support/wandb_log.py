"""The offline file of Weights & Biases, read by its own messages: blocks of LevelDB's log with a header before them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER_BYTES, BLOCK_BYTES, RECORD_BYTES = 7, 32768, 7
FULL, LAST = 1, 4


def payloads(file: Path) -> Iterator[bytes]:
    """The records of the file, each put together from its parts in blocks (LevelDB's doc/log_format.md)."""
    data, place, whole = file.read_bytes(), HEADER_BYTES, b""
    assert data.startswith(b":W&B")
    while place + RECORD_BYTES <= len(data):
        left = BLOCK_BYTES - place % BLOCK_BYTES
        if left < RECORD_BYTES:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + RECORD_BYTES])
        if kind == 0:  # the rest of a block is empty
            place += left
            continue
        place += RECORD_BYTES
        whole += data[place : place + length]
        place += length
        if kind in (FULL, LAST):
            yield whole
            whole = b""


def records(file: Path) -> list[Any]:
    """The messages of the file, of the type that the client itself stores."""
    from wandb.proto.wandb_internal_pb2 import Record

    found = []
    for payload in payloads(file):
        record = Record()
        record.ParseFromString(payload)
        found.append(record)
    return found


def named(items: Any) -> dict[str, Any]:
    """Items of a message by their names; nested ones joined by dots."""
    return {".".join(item.nested_key) if item.nested_key else item.key: json.loads(item.value_json) for item in items}
