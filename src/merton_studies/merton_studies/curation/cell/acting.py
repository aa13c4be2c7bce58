"""Families about possible actions, their consequences and past changes: AffdFunc, PhysCaus, DecPlan, DynScene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from merton.world.tasks import TASKS, VERBS
from merton_studies.curation.cell.fact import CellScene, Change, Fact, Item, Shot, choice, the, yes_no

_FITS_M = 0.006
_OPENINGS_M = (0.045, 0.050, 0.055)
_HELD_WHOLE = ("cube", "cylinder", "ball", "mug", "bottle", "brick", "spool", "cone", "peg", "cup", "bowl", "socket")
"""Kinds without a handle that could be grasped instead; of a mug, fingers meet the round body."""
_TASK_OF = {TASKS[verb].use[0]: TASKS[verb] for verb in VERBS}
"""A kind of thing to the task that it is used for."""
_USES = {kind: _TASK_OF[kind].use[1] for kind in ("drawer", "button", "knob", "cup", "mat", "socket", "lid")}
_UNDER_LID = ("cube", "cylinder", "ball", "bottle", "mug", "brick", "spool", "cone")
_LID_M, _LID_MARGIN_M = (0.076, 0.070), 0.004
"""Room under the lid of config/cell.yaml: across, and up to its roof."""
_PUSHED = ("it falls over", "it bumps into another thing", "it slides and stays upright without touching anything")
_VERBS = tuple(_TASK_OF[kind].name for kind in ("drawer", "mat", "socket", "cup", "button", "knob"))
"""Wrong choices for the next action."""


def using(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of AffdFunc in a picture: things are named by their colour alone, so that their kind must be seen."""
    for item in scene.alone(shot):
        words, subject = {"color": item.color}, item.color
        if item.kind in _USES:
            others = [use for kind, use in _USES.items() if kind != item.kind]
            offered = (_USES[item.kind], *[str(use) for use in rng.permutation(others)[:3]])
            yield choice("use", "AffdFunc", subject, _USES[item.kind], offered, words, shot)
        if item.kind in _HELD_WHOLE and item.upright and not item.inside:
            fits = bool(rng.random() < 0.5)  # first the answer, so that the opening does not tell it
            openings = [opening for opening in _OPENINGS_M if (opening - item.width_m) * (1 if fits else -1) > _FITS_M]
            if openings:
                words = {**words, "mm": f"{1000 * float(rng.choice(openings)):.0f}"}
                yield yes_no("gripper_fits", "AffdFunc", subject, fits, words, shot)
        lids = [other for other in scene.items.values() if other.kind == "lid" and shot.shows(other.name)]
        if item.kind in _UNDER_LID and item.upright and not item.on and not item.inside and lids:
            lid = lids[0]
            spare = _LID_M[0] - item.length_m, _LID_M[1] - item.height_m
            if abs(min(spare)) > _LID_MARGIN_M:
                words = {"color": item.color, "y": the(lid.name)}
                yield yes_no("lid_fits", "AffdFunc", subject, min(spare) > 0, words, shot)


def pushing(scene: CellScene, shot: Shot) -> Iterator[Fact]:
    """Facts of PhysCaus in a picture; the physics were run."""
    named, alone = scene.named(shot), scene.alone(shot)
    for push in scene.pushes:
        item = scene.items[push.name]
        if item not in named or (push.ended.fell and push.ended.hit):
            continue
        result = _PUSHED[0] if push.ended.fell else _PUSHED[1] if push.ended.hit else _PUSHED[2]
        words = {
            "x": f"the only {item.color} thing" if item in alone else the(item.name),
            "cm": f"{100 * push.distance_m:.0f}",
            "side": "left" if push.left else "right",
            "where": "at three quarters of its height" if push.at_three_quarters else "halfway up",
        }
        yield choice("push", "PhysCaus", item.name, result, _PUSHED, words, shot)
        yield yes_no("push_falls", "PhysCaus", item.name, push.ended.fell, words, shot)
        met = [name for name in push.ended.hit if name]
        others = [other.name for other in named if other.name not in (item.name, *met)]
        if len(met) == len(push.ended.hit) == 1 and scene.items[met[0]] in named and len(others) >= 3:
            yield choice("push_meets", "PhysCaus", item.name, met[0], (met[0], *others[:3]), words, shot, "")


# Plans ----------------------------------------------------------------------------------------------------------------


def planning(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of DecPlan in a picture: the goals that are reached already need no action, and must be seen."""
    goals = _goals(scene, shot)
    for chosen in list(permutations(goals, 2)) + list(permutations(goals, 3)):
        if len({name for goal in chosen for name in goal.things}) < sum(len(goal.things) for goal in chosen):
            continue  # one thing cannot be in two places, nor do two share one
        verbs = [goal.verb for goal in chosen if not goal.met]
        names = "; ".join(goal.text for goal in chosen)
        words = {"goals": names}
        if verbs:
            yield Fact(
                family="plan", dimension="DecPlan", subject=names, answer_kind="actions", answer=", ".join(verbs),
                words=words, pictures=(shot.file,), balance=str([goal.met for goal in chosen]),
            )  # fmt: skip
        first = verbs[0] if verbs else "nothing is left to do"
        offered = list(dict.fromkeys([goal.verb for goal in chosen]))
        offered += [str(verb) for verb in rng.permutation([verb for verb in _VERBS if verb not in offered])]
        offered = [*offered[:3], "nothing is left to do"]
        yield choice("next_action", "DecPlan", names, first, offered, words, shot)


@dataclass(frozen=True)
class _Goal:
    """A verb of docs/use/tasks.md, the goal in words, whether it is reached, and the things that it is about."""

    verb: str
    text: str
    met: bool
    things: tuple[str, ...]


def _goals(scene: CellScene, shot: Shot) -> list[_Goal]:
    named = scene.named(shot)
    goals = [_goal("drawer", item.opened, object=item.name) for item in named if item.opened is not None]
    for base in named:
        if base.kind == "bowl" and base.beads in (0, 8) and not scene.guests(base.name):
            goals.append(_goal("cup", base.beads == 8, target=base.name))
        for item in named:
            if not item.loose or not item.upright or item.kind in ("lid", "ball", "cup"):
                continue
            if base.kind == "mat" and not item.inside and item.on in ("", base.name):
                goals.append(_goal("mat", item.on == base.name, object=item.name, target=base.name))
            usual = abs(item.scale - 1) < 0.01  # the socket is made for it
            if base.kind == "socket" and item.kind == "peg" and usual and item.inside in ("", base.name):
                goals.append(_goal("socket", item.inside == base.name, object=item.name, target=base.name))
    return goals


def _goal(kind: str, met: bool, **names: str) -> _Goal:
    """The goal of the task that a kind of thing is used for, about the things in its `Task.goal`."""
    task = _TASK_OF[kind]
    text = task.goal.format(**{field: the(name) for field, name in names.items()})
    return _Goal(task.name, text, met, tuple(names.values()))


# Changes --------------------------------------------------------------------------------------------------------------

_DONE = {
    "moved": "{x} is in another place",
    "removed": "{x} is gone",
    "toppled": "{x} has been laid on its side",
    "opened": "{x} has been opened",
    "closed": "{x} has been closed",
    "nothing": "nothing has changed",
}


def changing(scene: CellScene, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of DynScene from two pictures of one place."""
    change = scene.change
    if change is None:
        return
    before, after = change.before, change.after
    named = scene.named(before)
    if change.name and (scene.items[change.name] not in named or not _shows_after(change)):
        return
    still = [item for item in named if item.name != change.name and after.shows(item.name)]
    pictures = (before.file, after.file)
    if len(still) < 3:
        return
    yield _pair(choice("what_changed", "DynScene", "", *_statements(change, still, rng), {}, before), pictures)
    if change.done in ("moved", "removed"):
        offered = [change.name, *(item.name for item in still[:3])]
        yield _pair(choice("which_changed", "DynScene", "", change.name, offered, {}, before, ""), pictures)
    if change.done == "moved" and abs(change.left_m) > 0.06:
        side = "left" if change.left_m > 0 else "right"
        words = {"x": the(change.name)}
        yield _pair(choice("moved_where", "DynScene", "", side, ("left", "right"), words, before), pictures)
    for item in still[:1]:
        words = {"x": the(item.name)}
        yield _pair(yes_no("did_change", "DynScene", item.name, False, words, before), pictures)
    if change.name:
        words = {"x": the(change.name)}
        yield _pair(yes_no("did_change", "DynScene", change.name, True, words, before), pictures)


def _shows_after(change: Change) -> bool:
    return change.done == "removed" or change.after.shows(change.name)


def _statements(change: Change, still: list[Item], rng: np.random.Generator) -> tuple[str, list[str]]:
    """The true statement, and four to choose from."""
    true = _DONE[change.done].format(x=the(change.name))
    false = [_DONE["nothing"]] if change.name else []
    for number, item in enumerate(still[:4]):
        able = ["moved", "removed"] if item.loose else []
        if item.opened is not None:
            able = ["closed" if item.opened else "opened"]
        if able:
            done = able[(number + int(rng.integers(2))) % len(able)]
            false.append(_DONE[done].format(x=the(item.name)))
    return true, [true, *false[:3]]


def _pair(fact: Fact, pictures: tuple[str, str]) -> Fact:
    return fact.model_copy(update={"pictures": pictures})


def acting(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """All facts of this module in a single picture."""
    yield from using(scene, shot, rng)
    yield from pushing(scene, shot)
    yield from planning(scene, shot, rng)


__all__ = ["acting", "changing"]
