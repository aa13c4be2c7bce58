"""Items, about which raters are asked: the media and texts of the page, and the facts that it must never show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Medium:
    """A picture or a moving picture of an item, prepared for the browser.

    Attributes:
        role: its place on the page, such as "image", "reference", "a", "b", "video". The protocol names the roles.
        kind: "image" (PNG without metadata) or "reel" (see `merton_studies.people.media.reel`).
        file: in the project's folder of prepared media; its name says nothing about the source.
        width_px, height_px: of the picture.
        frames: 1 for an image.
        rate_hz: frames a second; 0 for an image.
    """

    role: str
    kind: Literal["image", "reel"]
    file: Path
    width_px: int
    height_px: int
    frames: int = 1
    rate_hz: float = 0.0


@dataclass(frozen=True)
class Item:
    """One thing to be rated.

    Attributes:
        id: unique in the project; may name a model or a path, so it never leaves the server.
        scene: the scene it shows: intervals are clustered by it.
        media: role to medium.
        texts: shown to raters, such as "instruction", "plan", "question", "definition".
        facts: for exports and statistics, never shown: such as model, scenario, team, task, trial, distortion, level.
        gold: the answer that is known to be right, as the protocol's answer has it; None for an ordinary item.
    """

    id: str
    scene: str
    media: Mapping[str, Medium] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    gold: Mapping[str, Any] | None = None
