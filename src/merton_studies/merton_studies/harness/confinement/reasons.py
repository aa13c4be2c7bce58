"""The reason of the end of a run, in one sentence."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from merton.errors import InputError, MissingDependencyError
from merton_studies.harness.confinement.engines import check_name
from merton_studies.harness.confinement.guarding import Guard, size
from merton_studies.harness.confinement.limits import Ended, Limits
from merton_studies.harness.confinement.warden import BEGUN

LEFT_ONE = "It left 1 process running, which was ended."


def ended(guard: Guard, limits: Limits, engine: str) -> Ended:
    """The result of a run that is over.

    Raises:
        MissingDependencyError: the engine did not work, so that nothing ran.
    """
    stdout, stderr = (bytes(guard.kept[name]).decode(errors="replace") for name in ("out", "err"))
    if not guard.report.startswith(BEGUN) and not guard.reason:
        why = (stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise MissingDependencyError(f"the sandbox by {engine} does not work here: {why}")
    line, _, rest = bytes(guard.report[len(BEGUN) :]).partition(b"\n")
    exit_code, cpu_s, outputs = -signal.SIGKILL, guard.cpu_s, {}
    reason = guard.reason
    if not reason:
        try:
            head = json.loads(line)
            exit_code, cpu_s = os.waitstatus_to_exitcode(head["status"]), float(head["cpu_s"])
            outputs = _outputs(head["outputs"], rest)
            reason = _reason(exit_code, head, stderr, limits)
        except InputError as error:
            reason = f"What it left cannot be taken: {error}"
        except (ValueError, TypeError, KeyError, RecursionError):
            reason = "It ended, and what the sandbox reported of its end cannot be read."
    return Ended(exit_code, reason, stdout, stderr, guard.seconds, cpu_s, outputs)


def _outputs(listed: list[list[Any]], content: bytes) -> dict[str, bytes]:
    """Contents by name. The list comes from inside: InputError for a name that leads elsewhere."""
    outputs, place = {}, 0
    for name, length in listed:
        check_name(name)
        name.encode()  # a name that is no UTF-8 is refused
        if not 0 <= length <= len(content) - place:
            raise InputError(f"{name!r} is not whole")
        outputs[name] = content[place : place + length]
        place += length
    return outputs


def _reason(exit_code: int, head: dict[str, Any], stderr: str, limits: Limits) -> str:
    """The reason of the end, a sentence; empty if the program ended well."""
    if exit_code in (-signal.SIGXCPU, -signal.SIGKILL) and float(head["cpu_s"]) >= 0.9 * limits.cpu_s:
        return f"It used more than {limits.cpu_s:g} s of processor time and was ended."
    if exit_code == -signal.SIGXFSZ:
        return f"It wrote more than {size(limits.file_size)} to a file and was ended."
    if exit_code < 0:
        return f"It was ended by the signal {signal.Signals(-exit_code).name}."
    if exit_code:
        last = (stderr.strip().splitlines() or ["no word on standard error"])[-1][:300]
        return f"It ended with exit code {exit_code}: {last}{_limit(last, limits)}"
    files, total = head["total"]
    if files > limits.files or total > limits.room:
        return f"It left {files} files of {size(total)} together; {limits.files} and {size(limits.room)} are allowed."
    if head["left"]:
        left = head["left"]
        return f"It left {left} processes running, which were ended." if left > 1 else LEFT_ONE
    return ""


def _limit(error: str, limits: Limits) -> str:
    """The limit that an error of Python speaks of, in brackets."""
    hints = {
        "MemoryError": f"memory is limited to {size(limits.memory)}",
        "Cannot allocate memory": f"memory is limited to {size(limits.memory)}",
        "File too large": f"a file is limited to {size(limits.file_size)}",
        "No space left on device": f"all files together are limited to {size(limits.room)} and {limits.files}",
        "Too many open files": f"open files are limited to {limits.open_files}",
        "can't start new thread": f"processes and threads are limited to {limits.processes}",
        "Resource temporarily unavailable": f"processes and threads are limited to {limits.processes}",
        "Address family not supported": "there is no network",
        "Read-only file system": "only the working folder and the folder of temporary files can be written",
        "Operation not permitted": "the sandbox refuses it",
    }
    return next((f" ({hint})" for word, hint in hints.items() if word in error), "")
