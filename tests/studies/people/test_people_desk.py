"""Assignment: designs, shares, turns, leases, undo, and the laws of all of them in random interleavings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import combinations, pairwise
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Literal

import people_assignment
import pytest
from people_assignment import Chain, Marks

from merton.config import Model
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton_studies.people.attention import care
from merton_studies.people.consensus import consensus
from merton_studies.people.design import design, turns
from merton_studies.people.desk import Desk
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Kind, Ledger
from merton_studies.people.project import Attention, Project
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.workload import workload


class Films(Marks):
    """Films of teams: three raters a team, who judge at most ten films of it."""

    panel_raters: ClassVar[int | None] = 3
    panel_items: ClassVar[int | None] = 10

    def panel(self, item: Item) -> str | None:
        return f"team {int(item.id[1:]) // 5}"


class Clock:
    """A clock that stands still until it is moved; people register by the real one."""

    def __init__(self) -> None:
        self.time = datetime.now(timezone.utc)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, minutes: float) -> None:
        self.time += timedelta(minutes=minutes)


def project_of(protocol: str = "quality", **settings: Any) -> Project:
    """A project of five raters."""
    items = {"images": {"folder": "pictures"}}
    given = {"name": "study", "title": "Study", "protocol": protocol, "items": items, "raters": 5, **settings}
    return Project.model_validate(given)


class Study:
    """A desk over a record on the disk, and everything to start it again."""

    def __init__(self, folder: Path, items: int = 10, protocol: Protocol | None = None, gold: int = 0, **settings: Any):
        self.protocol = protocol or Marks()
        ordered = {"ratings": 5} if self.protocol.ordered else {}
        self.project = project_of("tasks" if self.protocol.ordered else "quality", **{**ordered, **settings})
        known = [None] * items + [{"mark": 3}] * gold
        self.items = [Item(f"i{at}", f"s{at // 2}", gold=answer) for at, answer in enumerate(known)]
        self.clock = Clock()
        self.ledger = Ledger(folder / "people.sqlite", "study", "{}")
        self.desk = self.fresh()

    def fresh(self) -> Desk:
        """The desk as a server that was started again has it."""
        return Desk(self.project, self.items, self.protocol, self.ledger, self.clock)

    def join(self, *names: str, role: Literal["rater", "expert"] = "rater") -> list[str]:
        """Register people."""
        return [self.ledger.register(name, role).id for name in names]

    @property
    def raters(self) -> list[str]:
        """All people of the study."""
        return [rater.id for rater in self.ledger.raters()]

    def said(self, item: str) -> list[Answer]:
        """The answers to an item as they were saved."""
        found = [answer for answer in self.ledger.answers() if answer.item == item]
        return sorted(found, key=lambda answer: answer.saved_utc)

    def step(self, rater: str, mark: int = 3, seconds: float = 2.0) -> bool:
        """Answer the next item; False without one."""
        work = self.desk.work(rater)
        if work.state != "working":
            return False
        slot = work.slots[0]
        answered = len(self.ledger.answers(undone=True))
        self.clock.forward(0.1)
        return self.desk.answer(rater, slot.number, f"a{answered}", {"mark": mark}, seconds)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_rater_gets_a_share_and_goes_on_after_a_restart(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada")
    first = study.desk.work("R01")
    assert (first.state, first.done, first.total, len(first.slots)) == ("working", 0, 6, 3)
    assert study.step("R01")
    assert study.step("R01")
    before = study.desk.work("R01")
    study.desk = study.fresh()
    assert study.desk.work("R01") == before
    assert (before.done, before.total, before.slots[0].number) == (2, 6, 3)
    while study.step("R01"):
        pass
    done = study.desk.work("R01")
    assert (done.state, done.done, done.total) == ("done", 6, 6)
    assert len({answer.item for answer in study.ledger.answers()}) == 6


def test_undo_opens_the_slot_again_and_is_done_once(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada")
    study.step("R01"), study.step("R01")
    assert study.desk.undo("R01", "u1")
    assert not study.desk.undo("R01", "u1")
    assert study.desk.work("R01").slots[0].number == 2
    study.desk = study.fresh()
    assert not study.desk.undo("R01", "u1"), "the same undo after a restart"
    assert [answer.number for answer in study.ledger.answers()] == [1]
    assert study.step("R01")
    assert study.desk.work("R01").slots[0].number == 3
    assert study.desk.undo("R01", "u2")
    assert study.desk.undo("R01", "u3")
    assert not study.desk.undo("R01", "u4")


def test_a_second_sending_is_known_and_contradictions_are_refused(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada", "Bob")
    study.desk.work("R01"), study.desk.work("R02")
    assert study.desk.answer("R01", 1, "x", {"mark": 4}, 1.0)
    assert not study.desk.answer("R01", 1, "x", {"mark": 4}, 1.5)
    for rater, number, id, answer in (
        ("R01", 1, "x", {"mark": 5}),
        ("R01", 1, "y", {"mark": 5}),
        ("R01", 2, "x", {"mark": 4}),
        ("R02", 1, "x", {"mark": 4}),
        ("R01", 9, "z", {"mark": 4}),
        ("R01", 2, "z", {"mark": 6}),
        ("R01", 2, "z", {"mark": 2, "more": 1}),
    ):
        with pytest.raises(InputError):
            study.desk.answer(rater, number, id, answer, 1.0)
    assert len(study.ledger.answers()) == 1
    with pytest.raises(UnknownNameError, match="R09"):
        study.desk.work("R09")


def test_every_seat_and_position_is_as_frequent_as_any_other() -> None:
    for items, raters, ratings in ((100, 5, 3), (30, 6, 3), (33, 8, 5), (10, 5, 5), (7, 5, 3), (9, 3, 1)):
        found = turns(items, raters, ratings, seed=4)
        assert all(len(set(seats)) == ratings for seats in found)
        loads = Counter(seat for seats in found for seat in seats)
        assert max(loads.values()) - min(loads.values()) <= 1
        for seat in range(raters):
            counts = [sum(seats[position] == seat for seats in found) for position in range(ratings)]
            assert max(counts) - min(counts) <= 1
        pairs = Counter(pair for seats in found for pair in combinations(sorted(seats), 2))
        shared = [pairs[pair] for pair in combinations(range(raters), 2)]
        assert max(shared) - min(shared) <= {100: 0, 30: 0, 10: 0, 9: 0}.get(items, 3)
    assert found != turns(9, 3, 1, seed=5)
    assert found == turns(9, 3, 1, seed=4)
    with pytest.raises(InputError, match="4 ratings by different raters: there are 3"):
        turns(9, 3, 4, seed=4)


def test_items_of_a_panel_have_the_same_raters() -> None:
    panels = [item // 5 for item in range(40)]
    found = turns(40, 6, 3, seed=1, panels=panels)
    blocks = {panel: {frozenset(found[item]) for item in range(40) if panels[item] == panel} for panel in range(8)}
    assert all(len(block) == 1 for block in blocks.values())
    assert set(Counter(seat for seats in found for seat in seats).values()) == {20}


@pytest.mark.parametrize(("ratings", "each"), [(1, 10), (2, 20), (3, 30)])
def test_items_of_a_panel_are_dealt_among_its_raters(ratings: int, each: int) -> None:
    """Thirty videos of a team for three annotators: ten different ones each, or each item twice, or all the same."""
    panels = [item // 30 for item in range(120)]
    found = turns(120, 5, ratings, seed=3, panels=panels, panel_raters=3)
    for panel in range(4):
        loads = Counter(seat for item in range(120) if panels[item] == panel for seat in found[item])
        assert list(loads.values()) == [each] * 3
    assert all(len(set(seats)) == ratings for seats in found)
    assert found == turns(120, 5, ratings, seed=3, panels=panels, panel_raters=3)
    assert all(len(set(seats)) == 1 for seats in turns(9, 2, 1, seed=3, panels=[0] * 9, panel_raters=3))


def test_repeats_come_at_a_distance_and_gold_items_are_spread() -> None:
    items = [Item(f"i{at}", f"s{at // 4}", gold={"mark": 3} if at >= 100 else None) for at in range(106)]
    plan = design(items, 5, 3, 0.1, seed=2)
    for sequence in plan.sequences:
        kinds = Counter(place.kind for place in sequence)
        assert kinds == {"design": 60, "repeat": 6, "gold": 6}
        first = {place.item: at for at, place in enumerate(sequence) if place.kind == "design"}
        assert all(at - first[place.item] >= 10 for at, place in enumerate(sequence) if place.kind == "repeat")
        gold = [at for at, place in enumerate(sequence) if place.kind == "gold"]
        assert all(later - earlier <= 30 for earlier, later in pairwise([0, *gold, len(sequence)]))
        scenes = [items[place.item].scene for place in sequence if place.kind == "design"]
        assert sum(one == other for one, other in pairwise(scenes)) <= 3  # where a part has no other scene left
    for item in range(100):
        shares = [[place.item for place in sequence if place.kind == "design"] for sequence in plan.sequences]
        thirds = sorted(mine.index(item) // 20 for mine in shares if item in mine)
        assert thirds == [0, 1, 2], "an item is once in each part of its raters' sequences"


def test_a_silent_raters_items_go_to_others_and_what_is_left_waits_for_them(folder: Path) -> None:
    study = Study(folder, items=20, raters=3, ratings=2, repeats=0.4)
    study.join("Ada", "Bob", "Cleo")
    while study.step("R01"):
        pass
    study.step("R02")
    before = study.desk.work("R02").slots
    assert study.desk.work("R01").state == "done", "the others are expected"
    study.clock.forward(31.0)
    while study.step("R01"):
        pass
    assert len({answer.item for answer in study.ledger.answers() if answer.rater == "R01"}) > 14, "more than the share"
    assert study.desk.work("R02").slots == before, "the rater comes back to the same place"
    while study.step("R02") or study.step("R03"):
        pass
    first = Counter((answer.item, answer.rater) for answer in study.ledger.answers() if answer.kind == "design")
    assert set(first.values()) == {1}
    assert set(Counter(item for item, _ in first).values()) == {2}
    again = [(answer.item, answer.rater) for answer in study.ledger.answers() if answer.kind == "repeat"]
    assert again
    assert set(again) <= set(first), "a repeat of an item that went to another"


def test_the_share_of_a_rater_who_has_not_begun_waits_a_week_or_half_the_time_to_the_deadline(folder: Path) -> None:
    for number, deadline in enumerate((None, "9999-01-01T00:00:00Z")):
        (folder / str(number)).mkdir()
        study = Study(folder / str(number), items=6, raters=("Ada", "Bob"), ratings=1, deadline_utc=deadline)
        study.join("Ada")
        while study.step("R01"):
            pass
        study.clock.forward(6 * 24 * 60)
        assert study.desk.work("R01").state == "done"
        study.clock.forward(25 * 60)
        assert study.desk.work("R01").state == "working"


def test_who_withdraws_is_gone_at_once_and_the_items_go_to_others(folder: Path) -> None:
    study = Study(folder, items=6, raters=3, ratings=1, lease_min=1.0)
    study.join("Ada", "Bob", "Cleo")
    study.step("R02")
    study.step("R01")
    study.ledger.withdraw("R02")
    study.clock.forward(0.2)
    with pytest.raises(UnknownNameError):
        study.desk.work("R02")
    assert study.join("Dora") == ["R04"]
    assert study.desk.work("R04").total == 2, "the place of the one who withdrew"


def test_the_workload_is_that_of_the_design(folder: Path) -> None:
    study = Study(folder, items=30, gold=10, ratings=3, repeats=0.5)
    plan = design(study.items, 5, 3, 0.5, seed=2)
    given = sum(map(len, plan.sequences)) / 5
    assert workload(study.project, study.protocol, study.items).answers == given == 37, "a gold item comes once"


def test_who_withdraws_takes_the_beginning_of_the_study_along_as_a_restart_does(folder: Path) -> None:
    study = Study(folder, items=6, raters=3, ratings=1)
    study.join("Ada", "Bob")
    study.step("R01")
    study.clock.forward(30)
    study.step("R02")
    study.ledger.withdraw("R01")
    study.clock.forward(1)
    study.desk.work("R02")
    begun = study.desk._state.begun
    assert begun is not None
    assert begun == study.fresh()._state.begun == datetime.fromisoformat(study.ledger.slots()[0].issued_utc)


def test_items_that_raters_dispute_are_rated_again_until_they_agree_or_the_most_is_reached(folder: Path) -> None:
    study = Study(folder, items=4, raters=5, ratings=2, top_up={"below": 0.6, "most": 4})
    study.join(*"ABCDE")
    marks = {"i0": [1, 5, 1, 5], "i1": [2, 3], "i2": [1, 5, 5, 5], "i3": [4, 4]}
    given: Counter[str] = Counter()
    going = True
    while going:
        going = False
        for rater in study.raters:
            if slots := study.desk.work(rater, ahead=0).slots:
                item = study.desk.item_of(rater, slots[0].number).id
                study.step(rater, marks[item][given[item]])
                given[item] += 1
                going = True
    kinds = Counter((answer.item, answer.kind) for answer in study.ledger.answers())
    assert kinds == {**{(item, "design"): 2 for item in marks}, ("i0", "top_up"): 2, ("i2", "top_up"): 2}
    agreement = consensus(study.protocol, study.items[0], study.ledger.answers()[:0], lambda criterion: 4.0)
    assert agreement is None


def test_a_panel_never_has_a_fourth_rater(folder: Path) -> None:
    study = Study(folder, items=20, protocol=Films())
    study.join(*"ABCDE")
    share = turns(20, 5, 3, 0, [item // 5 for item in range(20)])
    late = f"R{share[0][0] + 1:02d}"  # a rater of the first team, who opens the page and leaves
    held = study.desk.work(late, ahead=20).slots
    others = [rater for rater in study.raters if rater != late]
    for pause in (0.0, 31.0):
        study.clock.forward(pause)
        while sum(study.step(rater) for rater in others):
            pass
    assert study.desk.work(late).state == "done"
    number = next(slot.number for slot in held if slot.item in [f"i{at}" for at in range(5)])
    with pytest.raises(InputError, match="went to another rater"):
        study.desk.answer(late, number, "late", {"mark": 3}, 2.0)
    for team in range(4):
        answers = [answer for at in range(5) for answer in study.said(f"i{5 * team + at}")]
        assert len({answer.rater for answer in answers}) == 3
        assert len(answers) == 15
    with pytest.raises(InputError, match="team 0 has 11 items, but in quality 10 at most with ratings: 3"):
        Desk(study.project, [replace(item, id="i0") for item in study.items[:11]], Films(), study.ledger)


@pytest.mark.parametrize(
    ("scale", "marks", "agreement"),
    [("nominal", (1, 1, 2), 1 / 3), ("ordinal", (1, 2, 5), (3 / 4 + 0 + 1 / 4) / 3), ("ordinal", (3, 3), 1.0)],
)
def test_agreement_of_one_item(scale: Scale, marks: tuple[int, ...], agreement: float) -> None:
    protocol = Marks()
    protocol.criteria = {"mark": scale}  # type: ignore[misc]
    answers = [answer_of(f"R{at}", 1, mark) for at, mark in enumerate(marks)]
    assert consensus(protocol, Item("i0", "s0"), answers, lambda criterion: 4.0) == pytest.approx(agreement)


def answer_of(
    rater: str, number: int, mark: int, item: str = "i0", kind: Kind = "design", seconds: float = 2.0
) -> Answer:
    return Answer(
        f"{rater}-{number}", rater, number, item, kind, {"mark": mark}, seconds, f"2026-03-02T09:{number:02d}"
    )


def test_hasty_wrong_and_inconsistent_raters_are_marked_with_the_reason() -> None:
    items = {f"i{at}": Item(f"i{at}", f"s{at}", gold={"mark": 3} if at < 4 else None) for at in range(12)}
    answers = []
    for rater in ("careful", "hasty", "wrong", "fickle"):
        for at in range(12):
            kind: Kind = "gold" if at < 4 else "design"
            mark = 3 if at > 1 or rater != "wrong" else 5
            seconds = 0.1 if rater == "hasty" and at < 9 else 2.0
            answers.append(answer_of(rater, at, mark, f"i{at}", kind, seconds))
        for at in range(4, 8):
            answers.append(answer_of(rater, at + 8, 5 if rater == "fickle" and at < 7 else 4, f"i{at}", "repeat"))
    found = care(Attention(), Marks(), items, answers)
    assert {rater: one.reasons for rater, one in found.items()} == {
        "careful": (),
        "hasty": ("9 of 16 answers took less than 0.3 s; at most 50% may",),
        "wrong": ("2 of 4 gold items are right; at least 60% must be",),
        "fickle": ("25% of the values in 4 repeats are as the first time; at least 50% must be",),
    }
    assert (found["careful"].repeats_alike, found["wrong"].is_marked) == (1.0, True)
    few = [answer for answer in answers if answer.number in (0, 1, *range(4, 14))]
    assert not care(Attention(), Marks(), items, few)["wrong"].reasons, "two gold items are too few"
    assert not care(Attention(after=17), Marks(), items, answers)["wrong"].reasons


def test_the_work_of_a_marked_rater_ends_if_the_project_says_so(folder: Path) -> None:
    study = Study(folder, items=12, raters=2, ratings=1, attention={"after": 3, "least_s": 5.0, "ends": True})
    study.join("Ada", "Bob")
    assert [study.step("R01") for _ in range(4)] == [True, True, True, False]
    assert study.desk.work("R01").state == "closed"
    with pytest.raises(InputError, match="has ended"):
        study.desk.answer("R01", 4, "late", {"mark": 3}, 9.0)
    with pytest.raises(InputError, match="has ended"):
        study.desk.undo("R01", "u")
    assert study.fresh().work("R01").state == "closed"
    assert len(study.ledger.answers()) == 3, "nothing is deleted"
    while study.step("R02", seconds=9.0):
        pass
    assert {answer.item for answer in study.ledger.answers()} == {item.id for item in study.items}, (
        "the rest goes to the other"
    )


def test_after_the_deadline_nothing_is_taken_but_what_was_saved_is_known(folder: Path) -> None:
    study = Study(folder)
    end = study.clock.time + timedelta(hours=1)
    study.project = study.project.model_copy(update={"deadline_utc": end.isoformat(timespec="seconds")})
    study.desk = study.fresh()
    study.join("Ada")
    study.step("R01")
    study.clock.forward(61.0)
    work = study.desk.work("R01")
    assert (work.state, work.slots, work.done) == ("closed", (), 1)
    assert work.reason.startswith("The study ended at ")
    assert study.desk.answer("R01", 1, "a0", {"mark": 3}, 2.0) is False
    with pytest.raises(InputError, match="The study ended at"):
        study.desk.answer("R01", 2, "b", {"mark": 3}, 2.0)


def test_the_time_that_is_left_follows_the_raters_own_pace(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada")
    assert study.desk.work("R01").seconds_left is None
    for _ in range(3):
        study.step("R01")
    assert study.desk.work("R01").seconds_left == pytest.approx(3 * 2.0)


def test_turns_go_from_rater_to_rater_in_the_order_of_the_design(folder: Path) -> None:
    study = Study(folder, items=5, protocol=Chain())
    study.join(*"ABCDE")
    order = turns(5, 5, 5, 0)
    study.join("Xenia", role="expert")
    assert study.desk.work("E01").state == "waiting"
    for _ in range(200):
        if not any(study.step(rater) for rater in study.raters):
            break
    for at, item in enumerate(study.items):
        found = [answer.rater for answer in study.said(item.id) if answer.kind == "turn"]
        assert found == [f"R{seat + 1:02d}" for seat in order[at]]
        assert study.said(item.id)[-1].kind == "review"
    assert {study.desk.work(rater).state for rater in study.raters} == {"done"}


def test_a_rater_sees_what_was_said_and_it_stays_said(folder: Path) -> None:
    study = Study(folder, items=1, protocol=Chain())
    study.join(*"ABCDE")
    first, second = (f"R{seat + 1:02d}" for seat in turns(1, 5, 5, 0)[0][:2])
    waits = study.desk.work(second)
    assert (waits.state, waits.reason) == ("waiting", "1 item waits for the answers of others.")
    study.step(first, 4)
    assert study.desk.undo(first, "u1"), "no one has seen it yet"
    assert study.desk.work(second).state == "waiting"
    study.step(first, 5)
    assert [answer.answer["mark"] for answer in study.desk.work(second).said[0]] == [5]
    with pytest.raises(InputError, match="before the next person already"):
        study.desk.undo(first, "u2")


def test_a_turn_passes_when_its_rater_is_silent_and_comes_back_later(folder: Path) -> None:
    study = Study(folder, items=1, protocol=Chain())
    study.join(*"ABCDE")
    order = [f"R{seat + 1:02d}" for seat in turns(1, 5, 5, 0)[0]]
    held = study.desk.work(order[0]).slots[0]
    study.clock.forward(29.0)
    assert study.desk.work(order[1]).state == "waiting"
    study.clock.forward(2.0)
    assert study.step(order[1])
    with pytest.raises(InputError, match="item 1 went to another rater, as there was no answer for 30 min"):
        study.desk.answer(order[0], held.number, "late", {"mark": 3}, 2.0)
    again = study.desk.work(order[0])
    assert [slot.number for slot in again.slots] == [2]
    assert len(again.said[0]) == 1
    for rater in (order[0], *order[2:]):
        study.clock.forward(1.0)
        assert study.step(rater)
    assert [answer.rater for answer in study.said("i0")] == [order[1], order[0], *order[2:]]


class Rising(Chain):
    """Marks of an item that grow from turn to turn."""

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        if said and answer.model_dump()["mark"] <= said[-1].answer["mark"]:
            raise InputError("say more than the one before")
        return answer


def test_turns_keep_their_order_if_the_clock_goes_back(folder: Path) -> None:
    study = Study(folder, items=1, protocol=Rising())
    study.join(*"ABCDE")
    order = [f"R{seat + 1:02d}" for seat in turns(1, 5, 5, 0)[0]]
    for mark, rater in enumerate(order, 1):
        slot = study.desk.work(rater).slots[0]
        study.clock.forward(-60.0)
        if mark > 1:
            with pytest.raises(InputError, match="say more than the one before"):
                study.desk.answer(rater, slot.number, f"low{mark}", {"mark": mark - 1}, 1.0)
        assert study.desk.answer(rater, slot.number, f"id{mark}", {"mark": mark}, 1.0) is True
        assert study.desk.answer(rater, slot.number, f"id{mark}", {"mark": mark}, 1.0) is False, "sent again"
        study.desk = study.fresh()
    assert [answer.rater for answer in study.said("i0")] == order


def test_what_could_not_be_handed_out_is_handed_out_later(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada")
    hand_out, study.ledger.hand_out = study.ledger.hand_out, broken  # type: ignore[method-assign]
    with pytest.raises(InfrastructureError):
        study.desk.work("R01")
    study.ledger.hand_out = hand_out  # type: ignore[method-assign]
    work = study.desk.work("R01")
    assert [slot.number for slot in work.slots] == [1, 2, 3]
    assert study.ledger.slots() == work.slots


def broken(*_: object) -> bool:
    """A record that refuses."""
    raise InfrastructureError("the disk is full")


def test_a_turn_does_not_pass_while_its_answer_is_on_the_way_to_the_disk(folder: Path) -> None:
    study = Study(folder, items=1, protocol=Chain())
    study.join(*"ABCDE")
    first, second = (f"R{seat + 1:02d}" for seat in turns(1, 5, 5, 0)[0][:2])
    slot = study.desk.work(first).slots[0]
    save, states = study.ledger.save, []

    def slow(answer: Answer) -> bool:
        study.clock.forward(60.0)
        states.append(study.desk.work(second).state)
        return save(answer)

    study.ledger.save = slow  # type: ignore[method-assign]
    assert study.desk.answer(first, slot.number, "a", {"mark": 3}, 1.0)
    assert (states, study.desk.work(second).state) == (["waiting"], "working")


def test_no_rater_waits_for_the_disk_of_another(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada", "Bob")
    study.desk.work("R01"), study.desk.work("R02")
    entered, free = Event(), Event()
    save = study.ledger.save

    def slow(answer: Answer) -> bool:
        if answer.rater == "R01":
            entered.set()
            assert free.wait(60.0)
        return save(answer)

    study.ledger.save = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(study.desk.answer, "R01", 1, "a", {"mark": 3}, 1.0)
        assert entered.wait(60.0)
        assert study.desk.answer("R02", 1, "b", {"mark": 3}, 1.0)
        assert study.desk.work("R02").done == 1
        assert study.desk.work("R01").done == 0, "what is not on the disk is not answered"
        free.set()
        assert first.result() is True
    assert study.desk.work("R01").done == 1


def test_one_answer_wins_if_two_tabs_send_at_once(folder: Path) -> None:
    study = Study(folder)
    study.join("Ada")
    study.desk.work("R01")

    def send(number: int) -> str:
        try:
            return str(study.desk.answer("R01", 1, f"id{number % 4}", {"mark": 1 + number % 4}, 1.0))
        except InputError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(send, range(16)))
        numbers = [work.slots for work in pool.map(lambda _: study.desk.work("R01"), range(8))]
    assert found == {"True": 1, "False": 3, "refused": 12}
    assert len(set(numbers)) == 1
    assert len(study.ledger.answers()) == 1


KINDS = [
    "shares",
    "shares without trouble",
    "shares with disputes",
    "panels",
    "panels of different items",
    "turns",
    "turns without trouble",
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_of_assignment_hold_in_random_interleavings(kind: str) -> None:
    items = 24 if kind == "panels of different items" else 8  # an item has one rating there
    counts = people_assignment.Study(3, 7, items, **people_assignment.KINDS[kind]).run()
    assert counts.sent_again > 0
    assert (counts.deaths > 0) == ("without" not in kind)
