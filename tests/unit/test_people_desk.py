"""Assignment: designs, shares, turns, leases, undo, and the laws of all of them in random interleavings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from merton.config import Model
from merton.errors import InputError, UnknownNameError
from merton.people.desk import Desk
from merton.people.item import Item
from merton.people.ledger import Answer, Ledger
from merton.people.project import Project
from merton.people.protocol import Protocol, Scale

START = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


class Mark(Model):
    """An answer of the test's protocols."""

    mark: int


class Marks(Protocol):
    """A mark from 1 to 5."""

    name: ClassVar[str] = "quality"
    title: ClassVar[str] = "Marks"
    criteria: ClassVar[Mapping[str, Scale]] = {"mark": "ordinal"}
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"mark": (1.0, 5.0)}

    @property
    def answer(self) -> type[Model]:
        return Mark

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        return {}

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        assert isinstance(answer, Mark)
        if not 1 <= answer.mark <= 5:
            raise InputError(f"a mark is 1 to 5, got {answer.mark}")
        return answer

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"mark": float(answer["mark"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        return []


class Chain(Marks):
    """Five marks of an item, one rater after the other; then an expert's."""

    ordered: ClassVar[bool] = True
    reviewed: ClassVar[bool] = True

    def next_turn(self, item: Item, said: Sequence[Answer]) -> int | Literal["review"] | None:
        if said and said[-1].kind == "review":
            return None
        return len(said) if len(said) < 5 else "review"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

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

    def step(self, rater: str, mark: int = 3) -> bool:
        """Answer the next item; False without one."""
        work = self.desk.work(rater)
        if work.state != "working":
            return False
        slot = work.slots[0]
        answered = len(self.ledger.answers(undone=True))
        self.clock.forward(0.1)
        return self.desk.answer(rater, slot.number, f"a{answered}", {"mark": mark}, 2.0)


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
