"""A distortion with its level, as the command line names it: images, faults of depth and of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from merton.errors import InputError, UnknownNameError
from merton.perception.distortion import LEVELS, all_distortions, find_distortion
from merton.perception.distortion.stream import REFERENCE


@dataclass(frozen=True, order=True)
class Setting:
    """A distortion and its level, 0 .. 5; ("reference", 0) leaves the pictures as they are."""

    distortion: str = REFERENCE
    level: int = 0

    @property
    def name(self) -> str:
        """Such as "gaussian_blur@3"."""
        return f"{self.distortion}@{self.level}"


UNDISTORTED = Setting()


def setting_of(text: str) -> Setting:
    """The setting that "TYPE@LEVEL" names.

    Raises:
        InputError: another form, or a level that is no whole number of 0 .. 5.
        UnknownNameError: no such distortion.
    """
    name, at, level = text.partition("@")
    if not at or not name:
        raise InputError(f"a distortion is given as TYPE@LEVEL, such as gaussian_blur@3, got {text!r}")
    if name not in all_distortions():
        try:
            name = find_distortion(name).name  # by its number
        except UnknownNameError:
            raise UnknownNameError("distortion", name, all_distortions()) from None
    if level not in {str(whole) for whole in LEVELS}:
        raise InputError(f"the level of {name!r} must be one of {', '.join(map(str, LEVELS))}, got {level!r}")
    return Setting(name, int(level)) if int(level) else UNDISTORTED


def settings_of(texts: Iterable[str]) -> tuple[Setting, ...]:
    """The settings that texts name, each once, in their order; a type without a level stands for its levels 1 to 5.

    Raises as `setting_of`.
    """
    found: dict[Setting, None] = {}
    for text in texts:
        for one in [text] if "@" in text else [f"{text}@{level}" for level in LEVELS[1:]]:
            found[setting_of(one)] = None
    return tuple(found)
