"""Pairs of an undistorted and a distorted episode, and the proof that both began with the same scene.

Harnesses that set a scene by its number do not always set the same one: parts of the world may lie in no state that
they restore. A pair counts only if the first undistorted pictures of both episodes are the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.episodes.history import Past, recorded
from merton.experiment.subsets import WHOLE


@dataclass(frozen=True, order=True)
class Broken:
    """A distorted episode whose undistorted one began with another scene, or of which nothing was distorted.

    Attributes:
        agent, task, scene, condition: of the distorted episode; the condition in words.
        trial: its id.
        part: the name of its design of parts; "all" for the run's own.
        why: in one clause.
    """

    agent: str
    task: str
    scene: int
    condition: str
    trial: str
    part: str
    why: str


@dataclass(frozen=True)
class Pairs:
    """All pairs of a run.

    Attributes:
        kept: ids of the distorted trials, and names of their parts, whose pairs count.
        broken: those that do not, in order; they are left out of every paired number.
        alone: the number of distorted episodes without an undistorted one.
    """

    kept: frozenset[tuple[str, str]]
    broken: tuple[Broken, ...]
    alone: int

    def counts(self, trial: str, part: str = WHOLE) -> bool:
        """Whether the pair of a distorted trial counts."""
        return (trial, part) in self.kept


def pairs_of(episodes: Iterable[Past]) -> Pairs:
    """The pairs of all recorded episodes."""
    known = recorded(episodes)
    before = {(past.agent, past.case.task, past.case.seed): past for past in known if past.condition.is_reference}
    kept, broken, alone = set(), [], 0
    for past in known:
        if past.condition.is_reference:
            continue
        reference = before.get((past.agent, past.case.task, past.case.seed))
        if why := _fault(reference, past):
            words = str(past.condition)
            part = past.condition.part
            broken.append(Broken(past.agent, past.case.task, past.case.seed, words, past.id, part, why))
        elif reference is None:
            alone += 1
        else:
            kept.add((past.id, past.condition.part))
    return Pairs(frozenset(kept), tuple(sorted(broken)), alone)


def different_scenes(episodes: Iterable[Past]) -> list[tuple[str, int]]:
    """(task, scene) of the scenes that were not the same ones for all agents, by their undistorted episodes."""
    seen: dict[tuple[str, int], set[str]] = {}
    for past in recorded(episodes):
        if past.condition.is_reference and past.first_sha256:
            seen.setdefault((past.case.task, past.case.seed), set()).add(past.first_sha256)
    return sorted(scene for scene, digests in seen.items() if len(digests) > 1)


def _fault(reference: Past | None, distorted: Past) -> str:
    """Why a distorted episode is no pair; empty if it may be one."""
    if distorted.undistorted or reference is None:
        return distorted.undistorted
    if not reference.first_sha256 or not distorted.first_sha256:
        return "no first picture was seen of one of them"
    if reference.first_sha256 != distorted.first_sha256:
        return "its first undistorted pictures differ from those of the undistorted episode"
    return ""


def frame_sha256(pictures: Mapping[str, NDArray[np.generic]]) -> str:
    """The SHA-256 of the pictures of one instant: names, shapes, types and bytes of all cameras in order of name."""
    found = hashlib.sha256()
    for camera, pixels in sorted(pictures.items()):
        found.update(f"{camera}\x1f{pixels.shape}\x1f{pixels.dtype.str}\x1f".encode())
        found.update(np.ascontiguousarray(pixels).data)
    return found.hexdigest()


def scene_of_frame(digest: str) -> int:
    """The number of a scene that is known by its first pictures alone: the first 48 bits of their SHA-256."""
    return int(digest[:12], 16)
