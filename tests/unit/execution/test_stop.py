"""The stop: its whole table, what a motion may conclude from it, the latch file, and what the docs say."""

from __future__ import annotations

import errno
import json
import re
import threading
from pathlib import Path

import pytest

from merton.errors import ErrorCode, InfrastructureError
from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.safety import Verdict
from merton.execution.gate.stop import (
    HALTS,
    RELEASED,
    REPORTS,
    TABLE,
    TRIPS,
    Stop,
    StopEvent,
    StopState,
    markdown_table,
    mermaid_diagram,
)

S, E = StopState, StopEvent
DOCS = Path(__file__).parents[3] / "docs" / "lab" / "safety.md"
LATCHED = (S.COLLISION, S.CONTACT, S.EMERGENCY, S.FAULT)
SEVERITY = (S.RUNNING, S.RELEASING, S.COLLISION, S.CONTACT, S.EMERGENCY, S.FAULT, S.ENDED)
WAYS = {
    S.RUNNING: (),
    S.RELEASING: (E.STOP, E.RESET_BY_OPERATOR),
    S.COLLISION: (E.COLLISION_PREDICTED,),
    S.CONTACT: (E.CELL_COLLISION,),
    S.EMERGENCY: (E.STOP,),
    S.FAULT: (E.CELL_FAULT,),
    S.ENDED: (E.SHUTDOWN,),
}
"""Events that lead from the start to each state."""
CANCELLED = Verdict(message="cancelled")


def stop_in(state: StopState) -> Stop:
    stop = Stop()
    for event in WAYS[state]:
        stop = stop.after(event, "first")
    assert stop.state is state
    return stop


@pytest.mark.parametrize("event", StopEvent)
@pytest.mark.parametrize("state", StopState)
class TestEveryStateAndEvent:
    def test_the_table_has_an_entry(self, state: StopState, event: StopEvent) -> None:
        assert (state, event) in TABLE

    def test_the_new_state_is_that_of_the_table(self, state: StopState, event: StopEvent) -> None:
        before = stop_in(state)
        after = before.after(event, CANCELLED if event in HALTS else "second")
        if TABLE[state, event] is None:
            assert not before.accepts(event)
            assert after is before
        else:
            assert before.accepts(event)
            assert after.state is TABLE[state, event]

    def test_the_generation_grows_with_trips_and_halts_alone(self, state: StopState, event: StopEvent) -> None:
        before = stop_in(state)
        after = before.after(event, "second")
        repeated = event in REPORTS and after.state is state
        grows = before.accepts(event) and (event in HALTS or (event in TRIPS and not repeated))
        assert after.epoch == before.epoch + grows
        assert (after.last_trip == after.epoch) == (grows and event in TRIPS) or after.last_trip == before.last_trip

    def test_a_motion_that_began_before_is_over_unless_nothing_stopped(
        self, state: StopState, event: StopEvent
    ) -> None:
        before = stop_in(state)
        after = before.after(event, "second")
        undisturbed = event not in HALTS and after.state is S.RUNNING
        assert after.is_stopped(before.epoch) is not undisturbed
        assert after.accepts(E.MOTION) is (after.state is S.RUNNING)

    def test_the_first_reason_stays_until_a_reset(self, state: StopState, event: StopEvent) -> None:
        before = stop_in(state)
        after = before.after(event, "second")
        if before.state in LATCHED and after.state in LATCHED:
            assert after.reason == "first"
            assert SEVERITY.index(after.state) >= SEVERITY.index(before.state) or event is E.CELL_NORMAL
        elif after.state in LATCHED:
            assert after.reason == "second"
        elif after.state is S.RUNNING:
            assert after.reason == ""

    def test_a_stopped_arm_moves_again_only_after_a_reset(self, state: StopState, event: StopEvent) -> None:
        if stop_in(state).tripped and TABLE[state, event] is S.RUNNING:
            assert (state, event) == (S.RELEASING, E.RELEASE_WRITTEN)
        if TABLE[state, event] is S.RELEASING and state is not S.RELEASING:
            assert event in (E.RESET_BY_OPERATOR, E.RESET_BY_EXPERIMENT)


def test_every_state_can_always_be_stopped_for_good() -> None:
    for state in StopState:
        assert TABLE[state, E.STOP] in (S.EMERGENCY, S.FAULT, S.ENDED)
        assert TABLE[state, E.SHUTDOWN] is TABLE[state, E.FAILURE] is S.ENDED
    assert {TABLE[S.ENDED, event] for event in StopEvent} == {S.ENDED, None}


def test_an_experiment_releases_collisions_and_nothing_else() -> None:
    assert {state for state in LATCHED if TABLE[state, E.RESET_BY_EXPERIMENT] is not None} == {S.COLLISION, S.CONTACT}
    assert all(TABLE[state, E.RESET_BY_OPERATOR] is S.RELEASING for state in LATCHED)


def test_verdicts_tell_why_a_motion_ended() -> None:
    halted = Stop().after(E.HALT, CANCELLED)
    assert (halted.verdict, halted.tripped, halted.has_tripped(0)) == (CANCELLED, False, False)
    stopped = halted.after(E.COLLISION_PREDICTED, "forearm near the wall")
    assert stopped.verdict == Verdict(ErrorCode.COLLISION, "forearm near the wall")
    touched = Stop().after(E.CELL_COLLISION, "forearm touched the wall")
    assert touched.verdict == Verdict(ErrorCode.CONTACT, "forearm touched the wall")
    assert stopped.after(E.CELL_COLLISION, "touched while it braked").verdict == stopped.verdict, "the first one stays"
    assert stopped.after(E.DEACTIVATE, CANCELLED).verdict == stopped.verdict, "a halt hides no stop"
    worse = stopped.after(E.STOP, "stopped by request")
    assert worse.verdict == Verdict(ErrorCode.STOPPED, "forearm near the wall")
    released = worse.after(E.RESET_BY_OPERATOR).after(E.RELEASE_WRITTEN)
    assert (released.verdict, released.tripped, released.reason) == (RELEASED, False, "")
    assert released.has_tripped(halted.epoch)
    assert not released.has_tripped(released.epoch)
    assert Stop().after(E.STOP, "").reason, "a trip has a reason"


def test_the_docs_show_this_table_and_this_diagram() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert markdown_table() in text
    assert f"```mermaid\n{mermaid_diagram()}\n```" in text
    for one in (*StopState, *StopEvent):
        assert f"| `{one.name}` | {one.value} |" in text


def test_the_diagram_has_every_change_of_the_table_and_no_other() -> None:
    arrows = re.findall(r"(\w+) --> (\w+): (.+)", mermaid_diagram())
    shown = {(old, event, new) for old, new, events in arrows for event in events.split(", ")}
    changes = {(old.name, event.name, new.name) for (old, event), new in TABLE.items() if new not in (None, old)}
    assert shown == changes


class TestLatch:
    def test_only_a_reset_releases_the_stop_and_the_first_reason_stays(self) -> None:
        latch = EmergencyStopLatch()
        assert not latch.tripped
        assert latch.reason == ""
        latch.trip(E.STOP, "table")
        latch.trip(E.STOP, "wall")
        assert latch.tripped
        assert latch.reason == "table"
        assert latch.reset(E.RESET_BY_OPERATOR)
        assert not latch.tripped
        assert latch.reason == ""

    def test_a_refused_reset_releases_nothing(self) -> None:
        latch = EmergencyStopLatch()
        assert latch.reset(E.RESET_BY_EXPERIMENT), "nothing to release"
        latch.trip(E.CELL_FAULT, "protective stop")
        assert not latch.reset(E.RESET_BY_EXPERIMENT)
        assert latch.tripped

    def test_the_stop_command_goes_out_before_the_file_is_written(self, tmp_path: Path) -> None:
        path = tmp_path / "stop.json"
        latch = EmergencyStopLatch(path)
        seen: list[bool] = []
        latch.trip(
            E.STOP,
            "table",
            lambda: seen.append(json.loads(path.read_text())["tripped"]),
            lambda: seen.append(json.loads(path.read_text())["tripped"]),
        )
        assert seen == [False, True]

    def test_nothing_is_sent_for_a_motion_of_an_earlier_generation(self) -> None:
        latch = EmergencyStopLatch()
        since, sent = latch.stop.epoch, []
        assert latch.send(since, lambda _: sent.append("first"))
        latch.trip(E.STOP, "table")
        assert not latch.send(since, lambda _: sent.append("tripped"))
        assert not latch.send(latch.stop.epoch, lambda _: sent.append("tripped"))
        latch.reset(E.RESET_BY_OPERATOR)
        assert not latch.send(since, lambda _: sent.append("released meanwhile"))
        assert latch.send(latch.stop.epoch, lambda _: sent.append("second"))
        latch.note(E.HALT, CANCELLED)
        assert not latch.send(latch.stop.epoch - 1, lambda _: sent.append("halted"))
        assert sent == ["first", "second"]

    def test_each_generation_and_each_release_has_a_permit_of_its_own_also_after_a_restart(self) -> None:
        latch = EmergencyStopLatch()
        permits, sent = [latch.permit], []
        latch.note(E.HEARTBEAT)
        latch.note(E.CELL_NORMAL)
        assert latch.permit == permits[0], "nothing began"
        for change in (
            lambda: latch.note(E.HALT),
            lambda: latch.trip(E.STOP, "stopped by request"),
            lambda: latch.reset(E.RESET_BY_OPERATOR),
        ):
            change()
            permits.append(latch.permit)
        assert latch.send(latch.stop.epoch, sent.append)
        permits.append(EmergencyStopLatch().permit)
        assert sent == [permits[3]]
        assert permits == sorted({*permits})

    def test_a_trip_while_a_reset_is_being_written_stays(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "stop.json"
        latch = EmergencyStopLatch(path)
        latch.trip(E.STOP, "first")
        second = threading.Thread(target=lambda: latch.trip(E.COLLISION_PREDICTED, "second", halted.set))
        halted, dumps = threading.Event(), json.dumps

        def interrupted(state: object) -> str:
            if not second.ident:
                second.start()
                assert halted.wait(10), "writing a file keeps no stop command waiting"
            return dumps(state)

        monkeypatch.setattr(json, "dumps", interrupted)
        assert latch.reset(E.RESET_BY_OPERATOR)
        second.join()
        assert (latch.stop.state, latch.reason) == (S.COLLISION, "second")
        assert json.loads(path.read_text()) == {"tripped": True, "reason": "second"}

    def test_survives_a_restart(self, tmp_path: Path) -> None:
        path = tmp_path / "state" / "stop.json"
        EmergencyStopLatch(path).trip(E.COLLISION_PREDICTED, "forearm near the wall")
        after = EmergencyStopLatch(path)
        assert after.tripped
        assert after.reason == "forearm near the wall"
        assert after.stop.state is S.EMERGENCY, "only an operator may judge why"
        after.reset(E.RESET_BY_OPERATOR)
        assert not EmergencyStopLatch(path).tripped
        assert [file.name for file in path.parent.iterdir()] == ["stop.json"], "no temporary file is left"

    def test_an_empty_reason_is_a_reason(self, tmp_path: Path) -> None:
        EmergencyStopLatch(tmp_path / "stop.json").trip(E.STOP, "")
        assert EmergencyStopLatch(tmp_path / "stop.json").tripped

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "{}",
            '{"tripped": "no", "reason": ""}',
            "\x00\xff",
            pytest.param("[" * 10**5, id="deep"),
        ],
    )
    def test_a_file_that_cannot_be_understood_counts_as_tripped(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "stop.json"
        path.write_text(text, encoding="latin-1")
        latch = EmergencyStopLatch(path)
        assert latch.tripped
        latch.reset(E.RESET_BY_OPERATOR)
        assert json.loads(path.read_text())["tripped"] is False

    def test_the_stop_latches_even_if_the_file_cannot_be_written(self, tmp_path: Path) -> None:
        latch = EmergencyStopLatch(tmp_path / "folder" / "stop.json")
        (tmp_path / "folder" / "stop.json").unlink()
        (tmp_path / "folder").rmdir()
        (tmp_path / "folder").write_text("a file in the way")
        announced: list[bool] = []
        with pytest.raises(InfrastructureError, match="emergency stop"):
            latch.trip(E.STOP, "table", announce=lambda: announced.append(latch.tripped))
        assert latch.tripped
        assert announced == [True]
        with pytest.raises(InfrastructureError, match="emergency stop"):
            latch.reset(E.RESET_BY_OPERATOR)
        assert latch.tripped
        assert (latch.stop.state, latch.reason) == (S.EMERGENCY, "table")

    @pytest.mark.parametrize("end", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
    def test_a_trip_that_could_not_be_written_to_its_end_survives_nevertheless(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
    ) -> None:
        """A full disk, or a process that is killed while it writes."""

        def ends(*_: object) -> None:
            raise end

        path = tmp_path / "stop.json"
        latch = EmergencyStopLatch(path)
        assert not EmergencyStopLatch(path).tripped
        monkeypatch.setattr(json, "dumps", ends)
        with pytest.raises((InfrastructureError, KeyboardInterrupt)):
            latch.trip(E.STOP, "table")
        assert EmergencyStopLatch(path).tripped
        with pytest.raises((InfrastructureError, KeyboardInterrupt)):
            latch.reset(E.RESET_BY_OPERATOR)
        assert EmergencyStopLatch(path).tripped, "and a reset that could not be written lifts nothing"
        assert latch.tripped

    def test_a_file_that_cannot_be_written_is_reported_before_anything_moves(self, tmp_path: Path) -> None:
        (tmp_path / "folder").write_text("a file in the way")
        latch = EmergencyStopLatch(tmp_path / "folder" / "stop.json")
        assert latch.tripped, "a folder that cannot be read counts as tripped"
        (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "folder")
        with pytest.raises(InfrastructureError, match="cannot write the emergency stop"):
            EmergencyStopLatch(tmp_path / "nowhere" / "stop.json")
