"""The message definitions of a recording, so that it can be read where Merton is not installed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from merton.errors import MissingDependencyError

_SEPARATOR = "=" * 80


@dataclass(frozen=True)
class Schema:
    """A message type.

    Attributes:
        name: such as "sensor_msgs/msg/Image".
        text: its definition and those of all types in it, as MCAP's registry of encodings asks of `ros2msg`.
        type_hash: the hash that ROS 2 sends along with every topic of this type (REP 2016), such as "RIHS01_...".
    """

    name: str
    text: str
    type_hash: str


@lru_cache
def schema_of(name: str) -> Schema:
    """The schema of an installed message type; raises MissingDependencyError if its files are not installed."""
    about = json.loads(_file(name, "json").read_text(encoding="utf-8"))
    inner = [item["type_name"] for item in about["type_description_msg"]["referenced_type_descriptions"]]
    parts = [_file(name, "msg").read_text(encoding="utf-8")]
    for other in inner:
        package, _, kind = other.split("/")
        parts.append(f"{_SEPARATOR}\nMSG: {package}/{kind}\n{_file(other, 'msg').read_text(encoding='utf-8')}")
    hashes = {item["type_name"]: item["hash_string"] for item in about["type_hashes"]}
    return Schema(name, "\n".join(parts), hashes[name])


def _file(name: str, ending: str) -> Path:
    """A file that the package of a message type installs."""
    package, folder, kind = name.split("/")
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        path = Path(prefix) / "share" / package / folder / f"{kind}.{ending}"
        if path.is_file():
            return path
    raise MissingDependencyError(f"the definition of {name} is not installed: install ROS 2's package {package}")
