"""What a harness says about an episode in its address or a control call: all of it may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from merton.episodes.design import Condition, condition_of
from merton.errors import InputError
from merton.perception.distortion.stream import REFERENCE

NAMES = ("agent", "task", "scene", "distortion", "level", "session")
"""Of an address; all others are the policy server's and are passed on."""


@dataclass(frozen=True)
class Given:
    """What is said about an episode.

    Attributes:
        agent: the policy's name in the record.
        task: the harness's name for it; None: it does not say.
        scene: its number, or a text that the harness knows it by; None: it does not say.
        condition: that this episode is to have; None: the design's next.
        session: by which control calls name one of several connections.
    """

    agent: str
    task: str | None = None
    scene: int | str | None = None
    condition: Condition | None = None
    session: str = ""

    def taking(self, said: Mapping[str, Any]) -> Given:
        """This with all that is said, by the names of `NAMES`.

        Raises:
            InputError: one of them is of the wrong kind, or no distortion has that name or level.
        """
        for name in ("agent", "task", "session"):
            if name in said and not (isinstance(said[name], str) and said[name].isprintable()):
                raise InputError(f"{name} must be printable text, got {said[name]!r}")
        scene = said.get("scene", self.scene)
        if scene is not None and (isinstance(scene, bool) or not isinstance(scene, int | str) or scene == ""):
            raise InputError(f"scene must be a number or text, got {scene!r}")
        if isinstance(scene, str) and scene.isdecimal():
            scene = int(scene)
        changed = {name: said[name] for name in ("agent", "task", "session") if said.get(name)}
        return replace(self, scene=scene, condition=_condition(said) or self.condition, **changed)


def _condition(said: Mapping[str, Any]) -> Condition | None:
    if "distortion" not in said and "level" not in said:
        return None
    name = said.get("distortion", REFERENCE)
    level = said.get("level", 0 if name == REFERENCE else None)
    if isinstance(level, str) and level.isdecimal():
        level = int(level)
    if not isinstance(name, str) or type(level) is not int:
        raise InputError(f"a condition has a distortion and a whole level, got {name!r} and {level!r}")
    return condition_of(name, level)


def split_target(target: str) -> tuple[str, dict[str, str]]:
    """The target of a request without what is said to the proxy, and that."""
    parts = urlsplit(target)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    said = {name: value for name, value in pairs if name in NAMES}
    if not said:
        return target, {}
    kept = urlencode([(name, value) for name, value in pairs if name not in NAMES])
    return parts.path + (f"?{kept}" if kept else ""), said
