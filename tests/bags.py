"""Bags as `ros2 bag record` leaves them, written by the package rosbags: storages, compression, parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

Message = tuple[str, str, str, str, bytes]
"""Topic, type, definition, hash of the type, and CDR."""
STRING_HASH = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
"""Of std_msgs/String."""


def string(text: str) -> bytes:
    """std_msgs/String in little-endian CDR (OMG DDSI-RTPS 2.5, 10.2): length with the closing zero, bytes, zero."""
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def write_bag(
    folder: Path, messages: Sequence[Message], storage: str = "MCAP", packed: str = "NONE", parts: int = 1
) -> Path:
    """A bag of messages in their order.

    Args:
        storage: MCAP or SQLITE3.
        packed: NONE, FILE, MESSAGE or, for MCAP, STORAGE.
        parts: files of the bag, as after a split by size; its metadata names them.
    """
    size, files, about = -(-len(messages) // parts), [], None
    for part in range(parts):
        own = folder.with_name(f"{folder.name}_part{part}")
        _write(own, list(enumerate(messages))[part * size : (part + 1) * size], storage, packed)
        about = yaml.safe_load((own / "metadata.yaml").read_text())
        (file,) = (own / name for name in about["rosbag2_bagfile_information"]["relative_file_paths"])
        folder.mkdir(exist_ok=True)
        files.append(f"{folder.name}_{part}{''.join(file.suffixes)}")
        file.rename(folder / files[-1])
    assert about is not None
    about["rosbag2_bagfile_information"]["relative_file_paths"] = files
    (folder / "metadata.yaml").write_text(yaml.safe_dump(about))
    return folder


def _write(folder: Path, messages: Sequence[tuple[int, Message]], storage: str, packed: str) -> None:
    from rosbags import rosbag2

    writer = rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin[storage])
    if packed != "NONE":
        writer.set_compression(rosbag2.CompressionMode[packed], rosbag2.CompressionFormat.ZSTD)
    with writer:
        connections: dict[str, Any] = {}
        for number, (topic, kind, definition, type_hash, data) in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, msgdef=definition, rihs01=type_hash)
            writer.write(connections[topic], 1_000 + number, data)
