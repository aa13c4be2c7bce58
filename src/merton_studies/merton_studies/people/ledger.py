"""The answers of people in the record: written once, never overwritten, on the disk before they are acknowledged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import sqlalchemy as sa

from merton.errors import InputError
from merton.results.checking import checked_name, checked_sha256
from merton.results.database import Database, file_of
from merton.results.schema import PEOPLE_ANSWERS, PEOPLE_RATERS, PEOPLE_SLOTS, PEOPLE_UNDOS
from merton_studies.people import queries
from merton_studies.people.group_commit import GroupCommit

Role = Literal["rater", "expert"]
Kind = Literal["design", "repeat", "gold", "top_up", "turn", "review"]

LONGEST_ANSWER = 50_000
"""Greatest length of an answer as JSON [characters]."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Rater:
    """A person of a project.

    Attributes:
        id: pseudonym, "R01" or "E01" and so on; all pages, exports and statistics use it.
        name: as given; leaves the record only if asked for.
        role: "rater" or "expert".
        token_sha256: of the token that opens this person's work; None where the file of tokens has it.
        registered_utc: ISO 8601.
    """

    id: str
    name: str
    role: Role
    token_sha256: str | None
    registered_utc: str


@dataclass(frozen=True)
class Slot:
    """An item handed to a rater.

    Attributes:
        rater: pseudonym.
        number: from 1, in the order in which this rater is asked; the browser knows a slot by it alone.
        item: id of the item.
        kind: why: by the design, as a planted repeat, as a gold item, to top up an item, as a turn, as a review.
        issued_utc: ISO 8601.
    """

    rater: str
    number: int
    item: str
    kind: Kind
    issued_utc: str


@dataclass(frozen=True)
class Answer:
    """An answer as it was saved.

    Attributes:
        id: that the browser made, so that a second sending of it is known as such.
        rater, number, item, kind: of its slot.
        answer: as the protocol's model has it, plain JSON.
        seconds: from the moment the page showed the item until the answer, without pauses.
        saved_utc: ISO 8601.
        undone: True if the rater took it back; the slot is open again.
    """

    id: str
    rater: str
    number: int
    item: str
    kind: Kind
    answer: Mapping[str, Any]
    seconds: float
    saved_utc: str
    undone: bool = False


class Ledger:
    """Raters, slots and answers of one project in a record. Safe to share between threads, not after a fork.

    Args:
        where: the record, as `merton.results.database.Database` takes it.
        project: name of the project.
        definition: canonical JSON of it, without names of raters. If the record has another one and no answers, it is
            replaced, and the slots that followed from it are removed. None: as the record has it.
        alone: no other may open this project so, in this process or another: `merton_studies.people.desk.Desk` keeps
            in mind the slots that it has handed out.

    Raises:
        InputError: the record has answers of a project of this name with another definition; or it has no such
            project, and no definition was given; or another has opened it to be `alone`.
        InfrastructureError: the record cannot be opened.
    """

    def __init__(self, where: Path | str, project: str, definition: str | None = None, alone: bool = False) -> None:
        self.project = project
        if definition is None:
            if "://" not in str(where) and not file_of(where).is_file():
                raise InputError(f"{project} has no answers yet: `merton people serve` makes their record, {where}")
            Database(where, read_only=True).close()  # a wrong place stays as it is
        self._database = Database(where)
        try:
            if alone:
                self._database.claim("merton people serve", project)
            with self._database.transaction() as connection:
                queries.begin(connection, project, definition, self._database.where)
            # Readers have a connection of their own: in SQLite one connection is for one thread at a time.
            self._reader = Database(where, read_only=True)
        except BaseException:
            self._database.close()
            raise
        self._commits = GroupCommit(self._database)

    def register(self, name: str, role: Role = "rater", token_sha256: str | None = None) -> Rater:
        """Store a person, or return the one of this name and role.

        Raises:
            InputError: the name is not 1 to 200 printable characters, or it is known with another token.
        """
        checked_name(f"name of a{'n' if role == 'expert' else ''} {role}", name)
        if token_sha256 is not None:
            checked_sha256("token", token_sha256)

        def write(connection: sa.Connection) -> Rater:
            all_of_project = PEOPLE_RATERS.c.project == self.project
            same = all_of_project & (PEOPLE_RATERS.c.role == role) & (PEOPLE_RATERS.c.name == name)
            found = connection.execute(sa.select(*queries.RATER).where(same)).one_or_none()
            if found is not None:
                if token_sha256 not in (None, found.token_sha256):
                    raise InputError(f"there is a{'n' if role == 'expert' else ''} {role} {name!r} already")
                return Rater(*found)
            count = sa.select(sa.func.count()).where(all_of_project)
            position = connection.execute(count).scalar_one() + 1
            number = connection.execute(count.where(PEOPLE_RATERS.c.role == role)).scalar_one() + 1
            rater = Rater(f"{role[0].upper()}{number:02d}", name, role, token_sha256, queries.now())
            row = {**asdict(rater), "project": self.project, "position": position}
            connection.execute(sa.insert(PEOPLE_RATERS), row)
            return rater

        return self._commits.run(write)

    def raters(self) -> tuple[Rater, ...]:
        """All persons in the order of registration; without those who withdrew."""
        with self._reader.reading() as connection:
            return tuple(Rater(*row) for row in connection.execute(queries.RATERS, {"project": self.project}))

    def hand_out(self, slots: Sequence[Slot]) -> None:
        """Store that items were handed to raters; durable at return. A slot that is stored already stays as it is.

        Raises:
            InputError: a rater is unknown or withdrew, or a slot is stored with another item; nothing was stored.
        """
        if not slots:
            return
        raters = {slot.rater for slot in slots}

        def write(connection: sa.Connection) -> None:
            for rater in sorted(raters):
                if not queries.is_here(connection, self.project, rater):
                    raise InputError(f"there is no rater {rater!r} in the project {self.project!r}, or they withdrew")
            new = []
            for slot in slots:
                row = {"project": self.project, **vars(slot)}
                stored = connection.execute(queries.STORED_SLOT, row).one_or_none()
                if stored is None:
                    new.append(row)
                elif tuple(stored) != (slot.item, slot.kind):
                    raise InputError(f"slot {slot.number} of rater {slot.rater} was handed out with another item")
            if new:
                connection.execute(queries.ADD_SLOTS, new)

        self._commits.run(write)

    def slots(self) -> tuple[Slot, ...]:
        """All slots, by rater and number."""
        query = sa.select(*queries.SLOT).where(PEOPLE_SLOTS.c.project == self.project)
        with self._reader.reading() as connection:
            rows = connection.execute(query.order_by(*queries.by_rater(PEOPLE_SLOTS)))
            return tuple(Slot(*row) for row in rows)

    def save(self, answer: Answer) -> bool:
        """Store an answer; at return it is on the disk. Answers that arrive together share a transaction.

        Returns:
            False if this answer was saved before: nothing changes. Seconds and time may differ: the first count.

        Raises:
            InputError: its id is known with other content, its slot was not handed out, or has an answer that stands.
            InfrastructureError: the record refuses; nothing was stored.
        """
        row = self._row(answer)

        def write(connection: sa.Connection) -> bool:
            known = connection.execute(queries.STORED_ANSWER, row).one_or_none()
            if known is not None:
                if tuple(known) != (answer.rater, answer.number, row["answer"]):
                    raise InputError(f"the answer {answer.id!r} is already stored with other content")
                return False
            slot = connection.execute(queries.SLOT_TO_ANSWER, row).one_or_none()
            if slot is None or tuple(slot[:2]) != (answer.item, answer.kind):
                raise InputError(f"item {answer.number} was not handed to rater {answer.rater}")
            if slot.standing is not None:
                raise InputError(f"item {answer.number} of rater {answer.rater} has an answer already")
            connection.execute(queries.ADD_ANSWER, row)
            return True

        return self._commits.run(write)

    def _row(self, answer: Answer) -> dict[str, Any]:
        if not _ID.fullmatch(answer.id):
            raise InputError(f"the id of an answer has 1 to 64 letters, digits, - and _, got {answer.id[:80]!r}")
        if not (math.isfinite(answer.seconds) and answer.seconds >= 0):
            raise InputError(f"the seconds of an answer must be 0 or more, got {answer.seconds!r}")
        try:
            text = json.dumps(answer.answer, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"an answer must be plain JSON: {error}") from None
        if len(text) > LONGEST_ANSWER:
            raise InputError(f"an answer may have {LONGEST_ANSWER} characters, got {len(text)}")
        fields = {name: getattr(answer, name) for name in ("id", "rater", "number", "seconds", "saved_utc")}
        return {**fields, "project": self.project, "answer": text}

    def undo(self, rater: str, answer_id: str, undo_id: str) -> bool:
        """Take an answer back: a row of its own, so that nothing is overwritten.

        Returns:
            False if the answer was undone before, or this undo was done before, on any answer: nothing changes.

        Raises:
            InputError: there is no such answer of this rater.
        """
        if not _ID.fullmatch(undo_id):
            raise InputError(f"the id of an undo has 1 to 64 letters, digits, - and _, got {undo_id[:80]!r}")

        def write(connection: sa.Connection) -> bool:
            about = {"project": self.project, "id": answer_id}
            stored_answer = connection.execute(queries.STORED_ANSWER, about).one_or_none()
            if stored_answer is None or stored_answer.rater != rater:
                raise InputError(f"rater {rater} has no answer {answer_id[:80]!r}")
            of_project = PEOPLE_UNDOS.c.project == self.project
            either = (PEOPLE_UNDOS.c.answer == answer_id) | (PEOPLE_UNDOS.c.id == undo_id)
            stored = connection.execute(sa.select(PEOPLE_UNDOS.c.answer).where(of_project, either)).scalars().all()
            if stored:
                return False
            row = {"project": self.project, "answer": answer_id, "id": undo_id, "undone_utc": queries.now()}
            connection.execute(queries.ADD_UNDO, row)
            return True

        return self._commits.run(write)

    def answers(self, undone: bool = False) -> tuple[Answer, ...]:
        """Answers that stand, by rater and number; with `undone` also those that were taken back, in order of time."""
        table, undos = PEOPLE_ANSWERS, PEOPLE_UNDOS
        query = (
            sa.select(table, PEOPLE_SLOTS.c.item, PEOPLE_SLOTS.c.kind, undos.c.id.is_not(None).label("undone"))
            .select_from(table.join(PEOPLE_SLOTS, queries.of_slot(table)).outerjoin(undos, queries.of_answer(table)))
            .where(table.c.project == self.project)
            .order_by(*queries.by_rater(table), table.c.saved_utc, table.c.id)
        )
        if not undone:
            query = query.where(undos.c.id.is_(None))
        with self._reader.reading() as connection:
            return tuple(_answer(row) for row in connection.execute(query))

    def withdraw(self, rater: str) -> int:
        """Remove a person's name, slots and answers from the record; returns the number of answers removed.

        Raises:
            UnknownNameError: there is no such rater.
        """
        removed = self._commits.run(lambda connection: queries.remove(connection, self.project, rater))
        self._database.forget()
        return removed

    def close(self) -> None:
        """Close the record, after all answers are on the disk."""
        self._commits.close()
        self._reader.close()
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _answer(row: sa.Row[Any]) -> Answer:
    values = row._asdict()
    del values["project"]
    return Answer(**{**values, "answer": json.loads(values["answer"]), "undone": bool(values["undone"])})
