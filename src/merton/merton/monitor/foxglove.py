"""The layout with which Foxglove shows a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from merton.files import resource, write_file

LAYOUT = ("merton_bringup", "config/foxglove/merton.json")
"""The layout for a graph that runs."""


def write_layout(target: Path) -> None:
    """Write Merton's layout for recordings, in which pictures are compressed and so have topics of their own.

    Raises InfrastructureError if `target` cannot be written.
    """
    layout = json.loads(resource(*LAYOUT).read_text(encoding="utf-8"))
    for config in layout["configById"].values():
        mode: dict[str, Any] = config.get("imageMode", {})
        if "imageTopic" in mode:
            mode["imageTopic"] += "/compressed"
    write_file(target, (json.dumps(layout, indent=2) + "\n").encode())
