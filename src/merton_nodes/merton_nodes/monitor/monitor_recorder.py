"""A recorder that the operator's page begins and ends: recorder_node as a process of its own."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from merton.errors import MertonError
from merton.graph.supervisor import enclave, find_executable
from merton.monitor.buttons import PressReply

END_LIMIT_S = 20.0
"""Time limit for a recorder to write its last messages [s]; then it is killed, and its file lacks its end."""


class Recorder:
    """Begins and ends recordings of the graph in this ROS domain, one at a time. No call waits for the process.

    Args:
        folder: of the recordings; each has the time of its beginning in its name.
        others: whether the graph has a recorder that this page did not start.
    """

    def __init__(self, folder: Path, others: Callable[[], bool]) -> None:
        self._folder, self._others = folder, others
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._file: Path | None = None
        self._ending = False

    def record(self, wanted: bool) -> Future[PressReply]:
        """Begin or end; the answer comes from a thread of this call, for the start of a process takes a while."""
        pending: Future[PressReply] = Future()

        def work() -> None:
            try:
                with self._lock:
                    answer = self._begin() if wanted else self._end()
            except (MertonError, OSError) as error:
                answer = PressReply(False, f"no recording: {error}")
            with contextlib.suppress(Exception):  # the caller has given up
                pending.set_result(answer)

        threading.Thread(target=work, name="recording", daemon=True).start()
        return pending

    def _begin(self) -> PressReply:
        if self._process is not None and self._process.poll() is None:
            return PressReply(False, f"{self._file} is being recorded already")
        if self._others():
            return PressReply(False, "the graph records itself already")
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"recording-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}.mcap"
        program = str(find_executable("merton_nodes", "recorder_node"))
        command = [program, "--ros-args", *enclave("recorder_node"), "-p", f"path:={json.dumps(str(file))}"]
        # a session of its own: Ctrl-C ends this page, which then ends the recorder in order
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self._file, self._ending = file, False
        return PressReply(True, f"recording {file}")

    def _end(self) -> PressReply:
        process = self._process
        if process is None or process.poll() is not None:
            return PressReply(False, "this page records nothing")
        self._ending = True
        process.send_signal(signal.SIGINT)
        return PressReply(True, f"{self._file} is complete in a moment")

    def state(self) -> dict[str, Any]:
        """For the page: "state" is "off", "on", "ending", "failed", or "graph" if the graph records itself; "file",
        "megabytes" of it so far."""
        process, file = self._process, self._file
        megabytes = 0.0
        if file is not None and file.exists():
            megabytes = round(file.stat().st_size / 1e6, 1)
        if process is None:
            state = "graph" if self._others() else "off"
        elif process.poll() is None:
            state = "ending" if self._ending else "on"
        else:
            state = "off" if self._ending else "failed"
        return {"state": state, "file": str(file) if file else "", "megabytes": megabytes}

    def close(self) -> None:
        """End a recording that is under way, and wait for its last message."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
