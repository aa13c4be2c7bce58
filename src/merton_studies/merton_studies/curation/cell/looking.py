"""Families about what is there and in which state: PercepObj and SceneAct."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from merton.world.nouns import COLORS
from merton_studies.curation.cell.fact import POINTED_SHARE, CellScene, Fact, Item, Shot, alike, choice, the, yes_no

_SYNONYMS = {
    "mug": ("cup with a handle",),
    "ball": ("sphere",),
    "cube": ("block", "box"),
    "brick": ("block", "box"),
    "spool": ("reel",),
    "mat": ("disc", "circle", "coaster"),
    "bowl": ("dish",),
    "peg": ("cylinder", "rod"),
    "lid": ("cover",),
    "knob": ("dial",),
    "button": ("push button",),
    "drawer": ("open box", "box"),
    "socket": ("square socket", "square with a hole"),
    "cup": ("beaker", "mug"),
    "cylinder": ("can",),
}
_KINDS: tuple[str, ...] = (
    "ball", "bowl", "bottle", "brick", "button", "cone", "cube", "cup", "cylinder", "drawer", "knob", "lid",
    "mat", "mug", "peg", "socket", "spool",
)  # fmt: skip
"""All kinds that a right answer may have: one that is never a wrong choice would be right wherever it is a choice."""
_LYING = ("cylinder", "bottle", "peg", "spool", "mug")


def looking(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of PercepObj and SceneAct in a picture."""
    yield from _colors(scene, shot)
    yield from _kinds(scene, shot, rng)
    yield from _presence(scene, shot, rng)
    yield from _points(scene, shot)
    yield from _states(scene, shot)


def _only_of_kind(scene: CellScene, shot: Shot) -> list[Item]:
    """Things that can be named by their kind alone."""
    items = scene.items.values()
    return [
        item for item in items if sum(alike(item.kind, other.kind) for other in items) == 1 and shot.shows(item.name)
    ]


def _colors(scene: CellScene, shot: Shot) -> Iterator[Fact]:
    single = _only_of_kind(scene, shot)
    for item in single:
        yield choice("colour", "PercepObj", item.kind, item.color, COLORS, {"x": item.kind}, shot)
    for number, one in enumerate(single):
        for other in single[number + 1 :]:
            words = {"x": one.kind, "y": other.kind}
            same = one.color == other.color
            yield yes_no("same_colour", "PercepObj", f"{one.kind}/{other.kind}", same, words, shot)


def _kinds(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    for item in scene.alone(shot):
        words = {"color": item.color}
        called = (item.kind, *_SYNONYMS.get(item.kind, ()))
        also = [
            form for word in called for form in (word, f"a {word}", f"{item.color} {word}", f"the {item.color} {word}")
        ]
        yield Fact(
            family="only_one", dimension="PercepObj", subject=item.color, answer_kind="free_text", answer=item.kind,
            also=tuple(also[1:]), words=words, pictures=(shot.file,), balance=item.kind,
        )  # fmt: skip
        others = [kind for kind in _KINDS if not alike(kind, item.kind)]
        offered = [item.kind]
        for kind in rng.permutation(others).tolist():
            if len(offered) < 4 and not any(alike(kind, chosen) for chosen in offered):
                offered.append(kind)
        yield choice("kind", "PercepObj", item.color, item.kind, offered, words, shot)


def _absent(scene: CellScene, rng: np.random.Generator) -> list[str]:
    """Names made of colours and kinds that are there, of things that are not, nor anything like them."""
    kinds = sorted({item.kind for item in scene.items.values()})
    found = [
        f"{color} {kind}"
        for color in COLORS
        for kind in kinds
        if not any(item.color == color and alike(item.kind, kind) for item in scene.items.values())
    ]
    return [str(name) for name in rng.permutation(found)] if found else []


def _presence(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    absent = _absent(scene, rng)
    seen = [item for item in scene.named(shot) if len(item.name.split()) == 2]
    for item in seen:
        yield yes_no("presence", "PercepObj", item.name, True, {"x": item.name}, shot)
    for name in absent[: max(2, len(seen))]:
        yield yes_no("presence", "PercepObj", name, False, {"x": name}, shot)
    for number, item in enumerate(seen):
        others = [name for name in absent if name.split()[-1] != item.kind]
        offered = [str(name) for name in rng.permutation(others)[:3]] if len(others) >= 3 else []
        if offered:
            yield choice(
                "which_there", "PercepObj", item.name, item.name, (item.name, *offered), {}, shot, str(number % 4)
            )


def _points(scene: CellScene, shot: Shot) -> Iterator[Fact]:
    for item in scene.named(shot):
        if not shot.shows(item.name, POINTED_SHARE) or item.on or item.inside:
            continue
        if scene.guests(item.name):
            continue
        corners = [[round(x, 4), round(y, 4)] for x, y in shot.seen[item.name].outline.tolist()]
        middle = shot.seen[item.name].middle
        third = f"{int(3 * min(max(middle[0], 0), 0.999))}{int(3 * min(max(middle[1], 0), 0.999))}"
        yield Fact(
            family="point", dimension="PercepObj", subject=item.name, answer_kind="point", answer=json.dumps(corners),
            words={"x": the(item.name)}, pictures=(shot.file,), balance=third,
        )  # fmt: skip


def _states(scene: CellScene, shot: Shot) -> Iterator[Fact]:
    for item in scene.named(shot):
        words = {"x": the(item.name)}
        if item.opened is not None:
            state = "open" if item.opened else "closed"
            yield yes_no("drawer_open", "SceneAct", item.name, item.opened, words, shot)
            yield choice("drawer_state", "SceneAct", item.name, state, ("open", "closed"), words, shot)
        if item.kind in _LYING and item.loose and not item.inside and item.upright is not None:
            posture = "standing upright" if item.upright else "lying on its side"
            yield yes_no("fallen", "SceneAct", item.name, not item.upright, words, shot)
            postures = ("standing upright", "lying on its side")
            yield choice("posture", "SceneAct", item.name, posture, postures, words, shot)
        if item.kind == "bowl":
            full = item.beads >= 6
            guest = bool(scene.guests(item.name))
            if full or item.beads == 0:
                state = "white beads" if full else "a coloured object" if guest else "nothing"
                offered = ("white beads", "a coloured object", "nothing")
                yield choice("in_bowl", "SceneAct", item.name, state, offered, words, shot)
        if item.kind == "socket":
            filled = bool(scene.guests(item.name))
            yield yes_no("socket_filled", "SceneAct", item.name, filled, words, shot)
