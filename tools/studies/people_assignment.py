"""Laws of assignment in random interleavings: raters who leave, come back, answer twice, undo, and a server that dies.

    .venv/bin/python tools/studies/people_assignment.py --studies 40

Each study has a desk over a record in memory. Any write to it may be the last of a server, before or after it reached
the record; then a new desk goes on, and the browser sends the same again. After every death the old and the new desk
must agree on the work of every rater. Prints the counts as JSON; a broken law ends it with its sentence.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.errors import InputError
from merton_studies.people.design import design
from merton_studies.people.desk import Desk, Work
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Ledger, Rater, Role, Slot
from merton_studies.people.project import Project
from merton_studies.people.protocol import OrderedProtocol, Protocol, Scale

LEASE = timedelta(minutes=30)
TURNS = 5
"""Turns of an item in an ordered study."""


class Mark(Model):
    """An answer from 1 to 5."""

    mark: int


class Marks(Protocol):
    """Raters give marks independently of each other."""

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
        if not 1 <= answer.model_dump()["mark"] <= 5:
            raise InputError("a mark is 1 to 5")
        return answer

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"mark": float(answer["mark"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        return []


class Chain(Marks, OrderedProtocol):
    """Raters give marks one after the other, then an expert."""

    reviewed: ClassVar[bool] = True

    def next_turn(self, item: Item, said: Sequence[Answer]) -> int | Literal["review"] | None:
        if said and said[-1].kind == "review":
            return None
        return len(said) if len(said) < TURNS else "review"


class Films(Marks):
    """Marks of films in teams of four, each team judged by the same three raters."""

    panel_raters: ClassVar[int | None] = 3
    panel_items: ClassVar[int | None] = 10

    def panel(self, item: Item) -> str | None:
        return f"team {int(item.id[1:]) // 4}"


class Death(Exception):
    """The server dies at a write."""


class Memory(Ledger):
    """A record in memory, which outlives the desk; `death` makes the next write the server's last."""

    def __init__(self) -> None:
        self.people: list[Rater] = []
        self.given: dict[tuple[str, int], Slot] = {}
        self.saved: dict[str, Answer] = {}
        self.undos: set[str] = set()
        self.death: Literal["before", "after"] | None = None

    def _write(self, change: Callable[[], None]) -> None:
        death, self.death = self.death, None
        if death == "before":
            raise Death
        change()
        if death == "after":
            raise Death

    def register(self, name: str, role: Role = "rater", token_sha256: str | None = None) -> Rater:
        count = sum(rater.role == role for rater in self.people)
        self.people.append(Rater(f"{role[0].upper()}{count + 1:02d}", name, role, None, ""))
        return self.people[-1]

    def raters(self) -> tuple[Rater, ...]:
        return tuple(self.people)

    def hand_out(self, slots: Sequence[Slot]) -> None:
        assert not {(slot.rater, slot.number) for slot in slots} & self.given.keys(), "a slot was handed out twice"
        self._write(lambda: self.given.update({(slot.rater, slot.number): slot for slot in slots}))

    def slots(self) -> tuple[Slot, ...]:
        return tuple(sorted(self.given.values(), key=lambda slot: (slot.rater, slot.number)))

    def save(self, answer: Answer) -> bool:
        known = self.saved.get(answer.id)
        if known is not None:
            assert known.answer == answer.answer
            return False
        if any(one.rater == answer.rater and one.number == answer.number for one in self.answers()):
            raise InputError("answered already")
        self._write(lambda: self.saved.update({answer.id: answer}))
        return True

    def undo(self, rater: str, answer_id: str, undo_id: str) -> bool:
        if undo_id in self.undos or self.saved[answer_id].undone:
            return False

        def change() -> None:
            self.undos.add(undo_id)
            self.saved[answer_id] = replace(self.saved[answer_id], undone=True)

        self._write(change)
        return True

    def answers(self, undone: bool = False) -> tuple[Answer, ...]:
        found = [answer for answer in self.saved.values() if undone or not answer.undone]
        return tuple(sorted(found, key=lambda answer: (answer.rater, answer.number)))


@dataclass
class Counts:
    """Numbers of events in a study.

    Attributes:
        steps: actions of raters.
        answers: that stand at the end.
        deaths: of the server.
        sent_again, undone: answers.
        extra: ratings beyond those that the project asks for, as one who was silent came back to an item taken over.
        refused: answers and undos that came too late, as the item was before another person.
        taken_over: ratings of items outside of the rater's share, those of disputed items among them.
    """

    steps: int = 0
    answers: int = 0
    deaths: int = 0
    sent_again: int = 0
    undone: int = 0
    extra: int = 0
    refused: int = 0
    taken_over: int = 0


class Study:
    """One simulated study.

    Args:
        seed: of everything.
        raters, items, ratings, gold, repeats: of the project.
        ordered: True for turns and a review by one of two experts.
        trouble: whether raters leave and come back and servers die.
        panels: True for panels of raters.
        disputed: whether items on which raters disagree are rated again.
    """

    def __init__(
        self,
        seed: int,
        raters: int = 10,
        items: int = 20,
        ratings: int = 3,
        gold: int = 0,
        repeats: float = 0.0,
        ordered: bool = False,
        panels: bool = False,
        trouble: bool = True,
        disputed: bool = False,
    ) -> None:
        self.random, self.trouble, self.counts = Random(seed), trouble, Counts()
        self.protocol: Protocol = Chain() if ordered else Films() if panels else Marks()
        self.ratings = TURNS if ordered else ratings
        settings: dict[str, Any] = {"raters": raters, "ratings": self.ratings, "repeats": repeats, "seed": seed}
        if disputed:
            settings["top_up"] = {"below": 0.6, "most": ratings + 2}
        source = {"images": {"folder": "pictures"}}
        kind = "tasks" if ordered else "quality"
        self.project = Project.model_validate(
            {"name": "study", "title": "Study", "protocol": kind, "items": source, "lease_min": 30.0, **settings}
        )
        known = [None] * items + [{"mark": 3}] * gold
        self.items = [Item(f"i{at}", f"s{at // 2}", gold=answer) for at, answer in enumerate(known)]
        self.by_id = {item.id: item for item in self.items}
        self.time = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
        self.ledger = Memory()
        self.desk = self.fresh()
        self.names = [f"rater {n}" for n in range(raters)] + ([f"expert {n}" for n in range(2)] if ordered else [])
        self.random.shuffle(self.names)
        self.here: list[str] = []
        self.away: dict[str, datetime] = {}
        self.open_there: dict[str, int] = {}
        """The slot on the page of a rater who left."""

    def fresh(self) -> Desk:
        """The desk of a server that starts."""
        return Desk(self.project, self.items, self.protocol, self.ledger, lambda: self.time)

    def run(self) -> Counts:
        """The whole study; raises AssertionError with the law that was broken."""
        self.join()
        while self.names and not self.trouble:
            self.join()
        for _ in range(12 * len(self.items) * self.ratings):
            self.step()
        self.finish()
        self.check_end()
        self.counts.answers = len(self.ledger.answers())
        return self.counts

    def join(self) -> None:
        """The next person registers."""
        name = self.names.pop()
        self.here.append(self.ledger.register(name, "expert" if name.startswith("expert") else "rater").id)

    def step(self) -> None:
        """A person does something."""
        random = self.random
        self.counts.steps += 1
        self.time += timedelta(minutes=random.expovariate(len(self.here) + 1.0))
        for rater in [rater for rater, until in self.away.items() if until <= self.time]:
            del self.away[rater]
            self.come_back(rater)
        if self.names and random.random() < 0.1:
            self.join()
        if not self.here:
            return
        rater = random.choice(self.here)
        if self.trouble and random.random() < 0.03:
            self.here.remove(rater)
            work = self.work(rater)
            if work.slots:
                self.open_there[rater] = work.slots[0].number
            self.away[rater] = self.time + LEASE * random.expovariate(1.0)
        elif random.random() < 0.07:
            if self.trouble or self.time - self.seen(rater) < LEASE / 2:
                self.undo(rater)
        else:
            self.act(rater)
        if self.trouble and random.random() < 0.01:
            self.die()

    def come_back(self, rater: str) -> None:
        """A rater is here again; an answer that was typed before may arrive only now."""
        self.here.append(rater)
        if (number := self.open_there.pop(rater, None)) is not None and self.random.random() < 0.5:
            self.answer(rater, self.ledger.given[rater, number])

    def act(self, rater: str) -> bool:
        """Look at the work and answer; False if there was nothing to answer."""
        work = self.work(rater)
        if work.slots:
            self.answer(rater, work.slots[0] if self.random.random() < 0.9 else self.random.choice(work.slots))
        return bool(work.slots)

    def work(self, rater: str) -> Work:
        """The rater's work, and whether there is a reason where there is none."""
        work = self.with_death(lambda: self.desk.work(rater))
        assert (work.state == "working") == bool(work.slots)
        open_slots = [slot for slot in work.slots if self.standing(slot) is None]
        assert len(open_slots) == len(work.slots), "a slot that was answered is asked again"
        if work.state == "waiting" or (work.state == "done" and self.protocol.ordered):
            assert self.reason_to_wait(rater), f"{rater} waits without reason"
        return work

    def answer(self, rater: str, slot: Slot) -> None:
        """Send an answer, now and then twice."""
        if self.standing(slot) is not None:
            return
        identity, mark = f"answer{len(self.ledger.saved)}", self.random.randint(1, 5)

        def send() -> bool:
            return self.desk.answer(rater, slot.number, identity, {"mark": mark}, 2.0)

        try:
            self.with_death(send)
        except InputError as refusal:
            panel = self.protocol.panel(self.by_id[slot.item])
            later = [
                one.issued_utc
                for one in self.ledger.given.values()
                if one.issued_utc > slot.issued_utc
                if one.item == slot.item or (panel is not None and self.protocol.panel(self.by_id[one.item]) == panel)
            ]
            passed = max(later) if panel else min(later)
            silence = datetime.fromisoformat(passed) - self.seen(rater, passed)
            if silence <= LEASE:
                raise AssertionError(f"an answer of {rater}, who was there, was refused") from refusal
            self.counts.refused += 1
            return
        assert self.standing(slot) is not None, "an acknowledged answer is not in the record"
        if self.random.random() < 0.1:
            assert not send(), "an answer was saved twice"
            self.counts.sent_again += 1

    def undo(self, rater: str) -> None:
        """Take the last answer back; the browser may have to send it again."""
        identity, before = f"undo{self.counts.steps}", len(self.ledger.undos)
        try:
            self.with_death(lambda: self.desk.undo(rater, identity))
        except InputError:
            assert self.protocol.ordered
            self.counts.refused += 1
        assert len(self.ledger.undos) <= before + 1, "one undo took two answers back"
        self.counts.undone += len(self.ledger.undos) - before

    def with_death(self, request: Callable[[], Any]) -> Any:
        """A request during which the server may die; then the browser sends it again to the next server."""
        if self.trouble and self.random.random() < 0.02:
            self.ledger.death = self.random.choice(("before", "after"))
        try:
            result = request()
            self.ledger.death = None
            return result
        except Death:
            self.counts.deaths += 1
            self.desk = self.fresh()
            return request()

    def die(self) -> None:
        """Kill the server while nothing is under way: the next one gives everybody the same work."""
        self.counts.deaths += 1
        people = [rater.id for rater in self.ledger.people]
        handed = -1
        while handed < len(self.ledger.given):  # what one is given changes what another waits for
            handed = len(self.ledger.given)
            old = {rater: self.desk.work(rater) for rater in people}
        self.desk = self.fresh()
        for rater in people:
            assert self.desk.work(rater) == old[rater], f"the work of {rater} changed as the server was started again"

    def finish(self) -> None:
        """All but a third of those who left come back, and everything that can be answered is."""
        for rater in sorted(self.away):
            if self.random.random() < 0.7:
                del self.away[rater]
                self.come_back(rater)
        pauses = [timedelta(0), LEASE, timedelta(days=8)]
        while pauses:
            self.time += pauses.pop(0) + timedelta(minutes=1)
            while sum(self.act(rater) for rater in self.random.sample(self.here, len(self.here))):
                pauses = [timedelta(0), LEASE, timedelta(days=8)]
                self.counts.steps += len(self.here)

    def check_end(self) -> None:
        """The laws of a finished study."""
        kinds = Counter((answer.rater, answer.item, answer.kind == "repeat") for answer in self.ledger.answers())
        assert all(count == 1 for count in kinds.values()), "a rater has an item twice"
        rated = {(rater, item) for rater, item, again in kinds if not again}
        assert all((rater, item) in rated for rater, item, again in kinds if again), "a repeat of nothing"
        ordered, panels = self.protocol.ordered, [self.protocol.panel(item) or item.id for item in self.items]
        judges: dict[str, set[str]] = defaultdict(set)
        for item, panel in zip(self.items, panels, strict=True):
            judges[panel] |= {answer.rater for answer in self.counted(item.id)}
        assert self.protocol.panel_raters is None or max(map(len, judges.values())) <= 3, "a panel has four raters"
        turns = design(
            self.items, self.project.most_raters, self.ratings, 0.0, self.project.seed, panels, ordered
        ).turns
        share = {item.id: seats for item, seats in zip(self.items, turns, strict=True)}
        present = [rater for rater in self.here if rater.startswith("R")]
        for item in self.items:
            raters = [answer.rater for answer in self.counted(item.id)]
            if item.gold is None and len(raters) < self.ratings:
                panel = self.protocol.panel(item)
                whole = panel is not None and len(judges[panel]) == 3
                may = [rater for rater in present if not whole or rater in judges[panel or ""]]
                assert all((rater, item.id) in rated for rater in may), f"{item.id} was left over"
            taken_over = set(raters) - {f"R{seat + 1:02d}" for seat in share.get(item.id, ())}
            self.counts.taken_over += len(taken_over)
            if not self.protocol.ordered and self.project.top_up is None:
                assert len(raters) <= self.ratings + len(taken_over), f"{item.id} has {len(raters)} ratings"
                self.counts.extra += max(0, len(raters) - self.ratings)
            elif self.project.top_up is not None:
                most = self.project.top_up.most + len(taken_over) * self.trouble
                assert len(raters) <= most, f"{item.id} has {len(raters)} ratings"
            if not self.trouble and item.gold is None:
                assert len(raters) >= self.ratings, f"{item.id} has {len(raters)} ratings"
        if not self.trouble:
            self.check_balance()
        if self.protocol.ordered and any(rater.startswith("E") for rater in self.here):
            reviewed = {answer.item for answer in self.ledger.answers() if answer.kind == "review"}
            whole = {item.id for item in self.items if len(self.counted(item.id)) == TURNS}
            assert reviewed == whole, "an item was not reviewed, or too early"

    def check_balance(self) -> None:
        """Without trouble raters have equally many items and, in order, every position equally often: +-1."""
        raters = [rater.id for rater in self.ledger.people if rater.role == "rater"]
        design = Counter(answer.rater for answer in self.ledger.answers() if answer.kind in ("design", "turn"))
        loads = [design[rater] for rater in raters]
        assert max(loads) - min(loads) <= 1, f"raters have {min(loads)} to {max(loads)} items"
        if self.protocol.ordered:
            positions: Counter[tuple[str, int]] = Counter()
            for item in self.items:
                positions.update((answer.rater, at) for at, answer in enumerate(self.counted(item.id)))
            for rater in raters:
                counts = [positions[rater, at] for at in range(TURNS)]
                assert max(counts) - min(counts) <= 1, f"{rater} has the positions {counts} times"

    def reason_to_wait(self, rater: str) -> bool:
        """Whether each item that this person waits for is before a person, or due to one, whose lease runs.

        Written from the record alone, without the code of the desk.
        """
        review = rater.startswith("E")
        slots = defaultdict(list)
        for slot in self.ledger.given.values():
            slots[slot.item].append(slot)
        for item in self.items:
            turns = self.counted(item.id)
            if any(answer.item == item.id and answer.kind == "review" for answer in self.ledger.answers()):
                continue
            if rater in {answer.rater for answer in turns} or (len(turns) == TURNS) != review:
                continue
            since = max(
                [answer.saved_utc for answer in turns], default=min(s.issued_utc for s in self.ledger.given.values())
            )
            times = [datetime.fromisoformat(since)]
            times += [self.seen(slot.rater) for slot in slots[item.id] if self.standing(slot) is None]
            times += [self.seen(one.id) for one in self.ledger.people if one.id not in {turn.rater for turn in turns}]
            if self.time - max(times) > LEASE + timedelta(minutes=1):
                return False
        return True

    def seen(self, rater: str, before: str = "9999") -> datetime:
        """The last sign of life of a rater in the record, before a time."""
        slots = [slot.issued_utc for slot in self.ledger.given.values() if slot.rater == rater]
        saved = [answer.saved_utc for answer in self.ledger.saved.values() if answer.rater == rater]
        times = [datetime.fromisoformat(text) for text in slots + saved if text < before]
        return max(times, default=datetime(2026, 1, 1, tzinfo=timezone.utc))

    def standing(self, slot: Slot) -> Answer | None:
        """The answer to a slot that stands in the record."""
        found = [
            answer for answer in self.ledger.answers() if (answer.rater, answer.number) == (slot.rater, slot.number)
        ]
        return found[0] if found else None

    def counted(self, item: str) -> list[Answer]:
        """The answers that count as ratings of an item, as they were saved."""
        kinds = ("design", "top_up", "turn")
        found = [answer for answer in self.ledger.answers() if answer.item == item and answer.kind in kinds]
        return sorted(found, key=lambda answer: answer.saved_utc)


KINDS: dict[str, dict[str, Any]] = {
    "shares": {"gold": 3, "repeats": 0.2},
    "shares without trouble": {"gold": 3, "repeats": 0.2, "trouble": False},
    "shares with disputes": {"disputed": True},
    "panels": {"panels": True},
    "panels of different items": {"panels": True, "ratings": 1},
    "turns": {"ordered": True},
    "turns without trouble": {"ordered": True, "trouble": False},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=10, help="of each kind")
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--items", type=int, default=60)
    arguments = parser.parse_args()
    for kind, settings in KINDS.items():
        totals: Counter[str] = Counter()
        for seed in range(arguments.studies):
            totals.update(asdict(Study(seed, arguments.raters, arguments.items, **settings).run()))
        print(json.dumps({"kind": kind, "studies": arguments.studies, **totals}), flush=True)


if __name__ == "__main__":
    main()
