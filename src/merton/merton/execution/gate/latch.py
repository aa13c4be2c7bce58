"""The owner of the stop: it applies events, from any thread, and keeps a trip in a file until a reset."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from merton.errors import InfrastructureError
from merton.execution.gate.safety import Verdict
from merton.execution.gate.stop import Stop, StopEvent, StopState
from merton.files import written_whole


def _nothing() -> None:
    pass


class EmergencyStopLatch:
    """Owns the one `Stop` of a process. Only `reset` releases a trip; with a file, a trip also survives a restart.

    Two locks, so that writing the file never delays a stop command: the state changes under one that is held for no
    longer than a message takes to send; file and announcements change under the other.

    Args:
        path: JSON file for the state, or None to keep it in memory only. A file that cannot be understood counts as
            tripped: after a crash the safe side is to stand still.

    Attributes:
        stop: the state now. Replaced as a whole, so it may be read without a lock.
        permit: what a command bears that is sent now (`merton.execution.gate.permit`): the wall-clock time [ns] at
            which the generation began or the stop was released. It grows, also over a restart: a recording that is
            played again bears an old one.

    Raises:
        InfrastructureError: the file cannot be written, so a later stop could not be kept.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.stop, self.permit = Stop(), time.time_ns()
        self.lock = threading.Lock()
        """Around the file and the announcements; may be held while the file is written."""
        self._gate = threading.Lock()
        """Around the state and the commands sent because of it."""
        self._file = None if path is None else _LatchFile(Path(path))
        if self._file is not None and self._file.tripped:
            self.stop = self.stop.after(StopEvent.LATCH_FOUND, self._file.reason)
        self._latched = self.stop.epoch
        """The generation up to which trips have been written."""

    @property
    def tripped(self) -> bool:
        """True until a reset."""
        return self.stop.tripped

    @property
    def reason(self) -> str:
        """The reason why it tripped, empty if it has not."""
        return self.stop.reason

    def send(self, since: int, send: Callable[[int], None]) -> bool:
        """Call `send` with the permit if a motion that began in generation `since` may go on; returns if it may."""
        with self._gate:
            if self.stop.is_stopped(since):
                return False
            send(self.permit)
            return True

    def note(self, event: StopEvent, why: Verdict | None = None, halt: Callable[[], None] = _nothing) -> None:
        """Apply an event that the file does not keep, and call `halt` at once."""
        with self._gate:
            self._become(self.stop.after(event, why or Verdict()))
            halt()

    def trip(
        self,
        event: StopEvent,
        reason: str,
        halt: Callable[[], None] = _nothing,
        announce: Callable[[], None] = _nothing,
    ) -> None:
        """Apply an event of `TRIPS`.

        Args:
            event: the event.
            reason: one sentence; while the stop is latched, the first one stays.
            halt: sends the stop command. Called first, before slow work.
            announce: publishes the trip. Called last, even if the file cannot be written.

        Raises:
            InfrastructureError: the file cannot be written; the stop has tripped nevertheless.
        """
        with self._gate:
            after = self.stop.after(event, reason)
            if after.epoch == self.stop.epoch:  # the cell reports the same stop again
                return
            self._become(after)
            halt()
        with self.lock:
            self._latched = max(self._latched, after.epoch)
            try:
                if self._file is not None:
                    self._file.trip(after.reason)
            finally:
                announce()

    def reset(self, event: StopEvent, announce: Callable[[Stop], None] = lambda _: None) -> bool:
        """Release the stop; a trip from another thread meanwhile stays.

        Args:
            event: RESET_BY_OPERATOR or RESET_BY_EXPERIMENT.
            announce: publishes the release; called with the stop before it, once the release is written.

        Returns:
            False if the table refuses the event in this state.

        Raises:
            InfrastructureError: the file cannot be written; the stop stays tripped.
        """
        with self.lock:
            with self._gate:
                before = self.stop
                if not before.accepts(event):
                    return False
                if before.last_trip > self._latched:  # it is still to be written: it comes after this reset
                    return True
                self.stop = before.after(event)
                if self.stop.state is not StopState.RELEASING:  # there was nothing to release
                    return True
            try:
                if self._file is not None:
                    self._file.release()
            except BaseException:
                with self._gate:
                    if self.stop.state is StopState.RELEASING:
                        self.stop = replace(before, epoch=self.stop.epoch)
                raise
            with self._gate:
                self._become(self.stop.after(StopEvent.RELEASE_WRITTEN))
            announce(before)
            return True

    def _become(self, stop: Stop) -> None:
        """Replace the state, within `_gate`; a new generation and a release get a new permit."""
        if stop.epoch != self.stop.epoch or (self.stop.tripped and not stop.tripped):
            self.permit = max(self.permit + 1, time.time_ns())
        self.stop = stop


class _LatchFile:
    """The file that keeps a trip: {"tripped": bool, "reason": str}. Checked to be writable when it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        found = self._read()
        self.tripped, self.reason = found is not None, found or ""
        if not self.tripped:
            self.release()

    def trip(self, reason: str) -> None:
        """Write the trip, in place on purpose: an interruption leaves a file that reads as tripped."""
        if self.tripped:
            return
        self.tripped = True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("wb") as file:
                self._write(file, tripped=True, reason=reason)
        except OSError as error:
            raise self._unwritten(error) from None

    def release(self) -> None:
        """Write the release beside the file, then put it in its place: until that is done the file says tripped."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(self._path) as file:
                self._write(file, tripped=False, reason="")
        except OSError as error:
            raise self._unwritten(error) from None
        self.tripped = False

    def _write(self, file: BinaryIO, tripped: bool, reason: str) -> None:
        file.write(json.dumps({"tripped": tripped, "reason": reason}).encode())
        file.flush()
        os.fsync(file.fileno())

    def _read(self) -> str | None:
        """The reason of the trip in the file, None if there is none."""
        try:
            state = json.loads(self._path.read_text(encoding="utf-8"))
            return str(state["reason"]) if state["tripped"] is not False else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return f"the emergency stop's state in {self._path} cannot be read"

    def _unwritten(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(f"cannot write the emergency stop's state to {self._path}: {error.strerror}")
