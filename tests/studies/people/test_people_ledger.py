"""The ledger of people's answers: written once, never overwritten, on the disk before it is acknowledged."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from postgres import new_database

from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton_studies.people.ledger import Answer, Ledger, Slot
from patience import stretched, until

SLOTS = tuple(Slot("R01", number, f"item {number}", "design", "2026-01-01T00:00:00.000+00:00") for number in (1, 2, 3))
ANSWER = Answer("a1", "R01", 1, "item 1", "design", {"quality": 4}, 2.5, "2026-01-01T00:00:01.000+00:00")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "people.sqlite") if request.param == "sqlite" else new_database()


@pytest.fixture
def ledger(where: str) -> Iterator[Ledger]:
    """With one rater, who was handed three slots."""
    with Ledger(where, "study", "{}") as ledger:
        ledger.register("Ada")
        ledger.hand_out(SLOTS)
        yield ledger


def test_what_was_acknowledged_is_there_for_the_next_process(where: str) -> None:
    with Ledger(where, "study", "{}") as ledger:
        ada, expert = ledger.register("Ada", token_sha256="0" * 64), ledger.register("Émile", "expert")
        ledger.hand_out(SLOTS)
        assert ledger.save(ANSWER) is True
    with Ledger(where, "study") as ledger:
        assert ledger.raters() == (ada, expert)
        assert (ada.id, expert.id) == ("R01", "E01")
        assert ledger.register("Ada") == ada
        assert ledger.slots() == SLOTS
        assert ledger.answers() == (ANSWER,)


def test_an_answer_is_stored_once(ledger: Ledger) -> None:
    assert ledger.save(ANSWER) is True
    assert ledger.save(replace(ANSWER, seconds=9.0)) is False
    for other, cause in (
        (replace(ANSWER, answer={"quality": 5}), "is already stored with other content"),
        (replace(ANSWER, id="a2"), "item 1 of rater R01 has an answer already"),
        (replace(ANSWER, id="a2", number=4), "item 4 was not handed to rater R01"),
        (replace(ANSWER, id="a2", number=2), "item 2 was not handed to rater R01"),  # it was handed another item
        (replace(ANSWER, id="a2", rater="R02"), "item 1 was not handed to rater R02"),
        (replace(ANSWER, id="a 2"), "the id of an answer has 1 to 64"),
        (replace(ANSWER, id="a2", seconds=float("nan")), "seconds"),
        (replace(ANSWER, id="a2", answer={"quality": float("inf")}), "must be plain JSON"),
        (replace(ANSWER, id="a2", answer={"text": "x" * 50_000}), "may have 50000 characters"),
    ):
        with pytest.raises(InputError, match=cause):
            ledger.save(other)
    assert ledger.answers() == (ANSWER,)


def test_an_undo_is_a_row_of_its_own(ledger: Ledger) -> None:
    ledger.save(ANSWER)
    with pytest.raises(InputError, match="rater R02 has no answer 'a1'"):
        ledger.undo("R02", "a1", "u1")
    assert ledger.undo("R01", "a1", "u1") is True
    assert ledger.undo("R01", "a1", "u1") is False
    assert ledger.undo("R01", "a1", "u2") is False
    assert ledger.answers() == ()
    assert ledger.save(ANSWER) is False  # the browser sends the old one again
    second = replace(ANSWER, id="a2", answer={"quality": 2}, saved_utc="2026-01-01T00:00:02.000+00:00")
    assert ledger.save(second) is True
    assert ledger.undo("R01", "a2", "u1") is False  # the browser sends the old one again
    assert ledger.answers() == (second,)
    assert ledger.answers(undone=True) == (replace(ANSWER, undone=True), second)


def test_slots_are_handed_out_once(ledger: Ledger) -> None:
    ledger.hand_out(SLOTS)
    with pytest.raises(InputError, match="slot 1 of rater R01 was handed out with another item"):
        ledger.hand_out([replace(SLOTS[0], number=4), replace(SLOTS[0], item="other")])
    with pytest.raises(InputError, match="there is no rater 'R09'"):
        ledger.hand_out([replace(SLOTS[0], rater="R09")])
    assert ledger.slots() == SLOTS


def test_a_token_cannot_take_the_place_of_another_person(ledger: Ledger) -> None:
    for token in ("1" * 64, "2" * 64):
        ledger.register("Grace", token_sha256="1" * 64)
        if token != "1" * 64:
            with pytest.raises(InputError, match="there is a rater 'Grace' already"):
                ledger.register("Grace", token_sha256=token)
    with pytest.raises(InputError, match="there is a rater 'Ada' already"):
        ledger.register("Ada", token_sha256="1" * 64)
    with pytest.raises(InputError, match="name of a rater must be printable"):
        ledger.register("A\0da")
    assert [rater.name for rater in ledger.raters()] == ["Ada", "Grace"]


def test_withdrawal_leaves_a_pseudonym_that_is_never_given_again(ledger: Ledger) -> None:
    grace = ledger.register("Grace")
    ledger.hand_out([replace(SLOTS[0], rater="R02")])
    hers = replace(ANSWER, id="b1", rater="R02")
    ledger.save(hers)
    ledger.save(ANSWER)
    ledger.undo("R01", "a1", "u1")
    ledger.save(replace(ANSWER, id="a2"))
    assert ledger.withdraw("R01") == 2
    assert (ledger.raters(), ledger.answers(undone=True)) == ((grace,), (hers,))
    assert {slot.rater for slot in ledger.slots()} == {"R02"}
    for refused in (lambda: ledger.save(replace(ANSWER, id="a3")), lambda: ledger.hand_out(SLOTS)):
        with pytest.raises(InputError):
            refused()
    with pytest.raises(UnknownNameError, match="R02"):
        ledger.withdraw("R01")
    assert ledger.register("Ada").id == "R03"


def test_what_was_withdrawn_is_in_no_byte_of_the_file(tmp_path: Path) -> None:
    text = "a sentence that betrays its writer"
    with Ledger(tmp_path / "people.sqlite", "study", "{}") as ledger:
        ledger.register("Ada Lovelace")
        ledger.hand_out(SLOTS)
        ledger.save(replace(ANSWER, answer={"text": text}))
        ledger.withdraw("R01")
        stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"study" in stored
    assert text.encode() not in stored
    assert b"Lovelace" not in stored


def test_a_project_keeps_its_definition_once_it_has_answers(where: str) -> None:
    for definition in ('{"seed": 1}', '{"seed": 2}'):
        with Ledger(where, "study", definition) as ledger:
            assert ledger.slots() == ()
            ledger.register("Ada")
            ledger.hand_out(SLOTS)
    with Ledger(where, "study", '{"seed": 2}') as ledger:
        assert ledger.slots() == SLOTS
        ledger.save(ANSWER)
    with pytest.raises(InputError, match="has answers of another project 'study'"):
        Ledger(where, "study", '{"seed": 3}')
    with pytest.raises(UnknownNameError, match="study"):
        Ledger(where, "studie")
    with Ledger(where, "other", "{}") as ledger:
        assert (ledger.raters(), ledger.answers()) == ((), ())


def test_answers_of_many_threads_at_once_are_all_there(ledger: Ledger) -> None:
    """Ten raters send each of their answers from two tabs at the same time."""
    names = [ledger.register(f"rater {number}").id for number in range(10)]
    ledger.hand_out([replace(slot, rater=name) for name in names for slot in SLOTS])
    barrier = threading.Barrier(20)
    new: list[bool] = []

    def work(name: str) -> None:
        barrier.wait(stretched(60))
        for slot in SLOTS:
            answer = replace(ANSWER, id=f"{name}-{slot.number}", rater=name, number=slot.number, item=slot.item)
            new.append(ledger.save(answer))

    threads = [threading.Thread(target=work, args=(name,)) for name in names for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (new.count(True), new.count(False)) == (30, 30)
    assert [(one.rater, one.number) for one in ledger.answers()] == [(name, k) for name in names for k in (1, 2, 3)]


def test_a_closed_ledger_takes_nothing(ledger: Ledger) -> None:
    ledger.close()
    with pytest.raises(InfrastructureError, match="is closed"):
        ledger.save(ANSWER)


def test_a_project_of_a_record_is_served_by_one_at_a_time(where: str) -> None:
    """Two desks would hand the same slots out; statistics and other projects of the record are free."""
    with Ledger(where, "study", "{}", alone=True) as serving:
        serving.register("Ada")
        with pytest.raises(InputError, match="another merton people serve has 'study' in the record"):
            Ledger(where, "study", "{}", alone=True)
        with Ledger(where, "study") as reading, Ledger(where, "other", "{}", alone=True):
            assert len(reading.raters()) == 1
    with Ledger(where, "study", "{}", alone=True):
        pass


def test_a_killed_server_leaves_the_project_free(where: str) -> None:
    code = (
        "import sys\nfrom merton_studies.people.ledger import Ledger\n"
        f"ledger = Ledger({where!r}, 'study', '{{}}', alone=True)\nprint('open', flush=True)\nsys.stdin.read()"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"open\n"
    with pytest.raises(InputError, match="end it first"):
        Ledger(where, "study", "{}", alone=True)
    server.kill()
    server.communicate()

    def opens() -> bool:
        try:
            Ledger(where, "study", "{}", alone=True).close()
        except InputError:
            return False
        return True

    assert until(opens)  # a server of databases takes a moment to see that a client is gone


@pytest.mark.parametrize("ending", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_whose_file_is_gone(tmp_path: Path, ending: str, replaced: bool) -> None:
    path = tmp_path / "people.sqlite"
    with Ledger(path, "study", "{}") as ledger:
        ledger.register("Ada")
        ledger.hand_out(SLOTS)
        file = Path(f"{path}{ending}")
        content = file.read_bytes()
        file.rename(tmp_path / "away")
        if replaced:
            file.write_bytes(content)
        for change in (lambda: ledger.save(ANSWER), lambda: ledger.register("Ben")):
            with pytest.raises(InfrastructureError, match="was removed or replaced while it was in use"):
                change()
        (tmp_path / "away").rename(file)
        assert ledger.save(ANSWER) is True, "nothing had been written"


def test_a_project_that_was_never_served_has_no_answers_yet(tmp_path: Path) -> None:
    """As `people board` and `people statistics` ask; no file is made."""
    with pytest.raises(
        InputError, match=r"study has no answers yet: `merton people serve` makes their record, .*\.sqlite"
    ):
        Ledger(tmp_path / "people.sqlite", "study")
    assert list(tmp_path.iterdir()) == []
