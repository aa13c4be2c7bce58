"""Test cases of one name in two records that are different scenes, by their undistorted pictures.

A scene of the embedded cell follows from its task and number. One of another program does not: two harnesses, or two
versions of one, call different scenes alike, and nothing of one scene follows for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from merton.results.recorded_world import RecordedWorld, worlds_sentence
from merton.results.records import CaseRecord, TrialRecord
from merton.results.text import counted

APART = 1 << 40
"""Added to the number of a scene that is another one, so that it has no name in common."""


Scene = tuple[str, int]
"""Task and number."""
Pictures = Mapping[Scene, frozenset[str]]
"""The SHA-256 of the undistorted pictures that a scene is known to have begun with."""


def pictures_of(cases: Iterable[CaseRecord]) -> dict[Scene, frozenset[str]]:
    """The pictures of the scenes of which some are known."""
    found: dict[Scene, set[str]] = {}
    for case in cases:
        if case.reference_image and case.task is not None and case.seed is not None:
            found.setdefault((case.task, case.seed), set()).add(case.reference_image)
    return {scene: frozenset(known) for scene, known in found.items()}


def same_scenes(
    first: Sequence[TrialRecord],
    second: Sequence[TrialRecord],
    pictures: tuple[Pictures, Pictures],
    worlds: tuple[RecordedWorld | None, RecordedWorld | None] = (None, None),
) -> tuple[list[TrialRecord], list[TrialRecord], str]:
    """The trials of two records that can be compared, and a sentence on those that cannot; empty if all can.

    Of scenes that both have, those with different pictures are left out; where all are different, the two are samples
    of their own, and no test case is in both any more.

    Args:
        pictures: of the first and of the second record. A scene of unknown pictures is taken for the same, unless
            other ones are not.
        worlds: of the first and of the second; no scene of one is one of another. None if it is not known.
    """
    if text := worlds_sentence(*worlds):
        return list(first), _renamed(second), text
    one, other = pictures
    common = set.intersection(*({_scene(record) for record in records} for records in (first, second)))
    apart = {scene for scene in common if scene in one and scene in other and not one[scene] & other[scene]}
    if not apart:
        return list(first), list(second), ""
    apart |= {scene for scene in common if scene not in one or scene not in other}  # not known to be the same
    scenes = counted(len(apart), "scene")
    if apart == common:
        text = f"A and B have {scenes} of the same name, and each begins with another picture in B: none is compared "
        return list(first), _renamed(second), f"{text}with itself."
    kept = [[record for record in records if _scene(record) not in apart] for records in (first, second)]
    return kept[0], kept[1], f"Left out: {scenes} that begin with another picture in B, so they are other scenes."


def _renamed(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    return [replace(record, case=replace(record.case, seed=record.case.seed + APART)) for record in records]


def _scene(record: TrialRecord) -> Scene:
    return record.case.task, record.case.seed
