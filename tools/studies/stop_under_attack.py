"""STOP and submissions while another process holds thousands of idle, half-sent and slow connections.

The servers run in a process of their own with a hard limit of file descriptors, the attacker in another with as many
as it needs. The attacker has no token. It opens the connections anew when the server closes them, so many a second. It
comes from the same address, 127.0.0.1, as the operator and the sender of submissions. The presses and the submissions
come one after the other, each over a connection of its own.

    .venv/bin/python tools/studies/stop_under_attack.py [--connections 5000] [--websockets 50] [--presses 100]
        [--descriptors 1024] [--reopened 2000] [--open]

`--descriptors 0`: the limit of this shell. `--open`: servers without tokens, as they are on loopback.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

TOKEN = "the token of an operator in a measurement"
OWNER = "Acme"
LIMIT_S = 10.0
"""After which a press or a submission counts as lost [s]."""
PAUSE_S = 0.1
"""Between two presses [s]."""
SUBMISSIONS = 20
START_LIMIT_S = 120.0
SLOW_PERIOD_S = 1.0
"""Time between two bytes of a slow connection [s]."""
HALF_HEAD = b"POST /api/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF_UPLOAD = (
    b"POST /api/submissions HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    b'Content-Length: 100000\r\n\r\n--x\r\nContent-Disposition: form-data; name="archive"; filename="a.zip"\r\n\r\nPK'
)
WEBSOCKET = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
KINDS = {"idle": b"", "half": HALF_HEAD, "slow": HALF_HEAD, "upload": HALF_UPLOAD, "websocket": WEBSOCKET}
"""Kind of connection to the bytes with which it begins."""


def serve_monitor(folder: Path, tokens: Path | None) -> None:
    """The operator's page, whose presses are answered at once."""
    from merton.monitor.buttons import PressReply
    from merton.monitor.hub import Hub
    from merton.monitor.server import MonitorServer

    class Controls:
        def stop(self) -> Future[PressReply]:
            pending: Future[PressReply] = Future()
            pending.set_result(PressReply(True, "stopped"))
            return pending

        reset = confirm = arranged = stop

    server = MonitorServer(Hub(), Controls(), folder / "presses.jsonl", port=0, tokens=tokens)  # type: ignore[arg-type]
    server.start()
    print(server.address, flush=True)
    sys.stdin.read()
    server.stop()


def serve_board(folder: Path, tokens: Path | None) -> None:
    """A board of two agents, which takes submissions."""
    from merton.leaderboard.serve import run
    from merton.results.records import Outcome, TestCase, TrialRecord
    from merton.results.store import ResultStore

    record = folder / "results.sqlite"
    with ResultStore(record) as store:
        store.record_all(
            TrialRecord(
                "study", agent, TestCase("pick", seed, "gaussian_blur", 3), Outcome.FAILURE, execution=10 * seed
            )
            for agent in ("hold", "servo")
            for seed in range(4)
        )
    run(record, port=0, tokens=tokens, say=lambda line: print(line, flush=True))


def attack(address: str, counts: dict[str, int], reopened_per_s: float) -> None:
    """Hold the connections until stdin ends; say at the end how many were opened."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    where = urlsplit(address)
    chosen, opened, slow = selectors.DefaultSelector(), Counter[str](), set()
    closed: deque[str] = deque()
    chosen.register(sys.stdin, selectors.EVENT_READ)

    def connect(kind: str) -> None:
        one = socket.socket()
        one.setblocking(False)
        with contextlib.suppress(OSError):  # of a connection that fails, the selector tells
            one.connect((where.hostname, where.port))
        chosen.register(one, selectors.EVENT_WRITE, kind)
        opened[kind] += 1

    def lost(one: socket.socket, kind: str) -> None:
        chosen.unregister(one)
        slow.discard(one)
        one.close()
        closed.append(kind)

    for kind, count in counts.items():
        for _ in range(count):
            connect(kind)
    drip_s, ready = time.monotonic(), False
    allowed, last_s = 0.0, time.monotonic()
    while True:
        for key, _ in chosen.select(0.01):
            if key.fileobj is sys.stdin:
                print(json.dumps(dict(opened)), flush=True)
                return
            one, kind = key.fileobj, key.data
            assert isinstance(one, socket.socket)
            try:
                if key.events == selectors.EVENT_WRITE:
                    one.send(KINDS[kind]) if KINDS[kind] else one.getpeername()
                    chosen.modify(one, selectors.EVENT_READ, kind)
                    if kind == "slow":
                        slow.add(one)
                elif not one.recv(65536):
                    lost(one, kind)
            except OSError:
                lost(one, kind)
        now_s = time.monotonic()
        allowed, last_s = min(allowed + reopened_per_s * (now_s - last_s), 0.1 * reopened_per_s), now_s
        while closed and allowed >= 1:
            connect(closed.popleft())
            allowed -= 1
        if not ready and sum(opened.values()) >= sum(counts.values()):
            ready = True
            print("attacking", flush=True)
        if time.monotonic() - drip_s > SLOW_PERIOD_S:
            drip_s = time.monotonic()
            for one in list(slow):
                with contextlib.suppress(OSError):
                    one.send(b"x")


class Program:
    """This file as another process with a limit of descriptors; its lines, and its end with its stdin."""

    def __init__(self, *arguments: str, descriptors: int | None = None) -> None:
        def limit() -> None:
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        command = [sys.executable, __file__, *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=limit
        )

    def line(self, holding: str) -> str:
        """The first line that holds a text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if holding in line:
                return line.strip()
        raise RuntimeError(f"{self.process.args} ended before it said {holding!r}")

    def end(self) -> str:
        """Close its stdin; its last words."""
        try:
            return self.process.communicate(timeout=START_LIMIT_S if self.process.poll() is None else 1)[0] or ""
        except subprocess.TimeoutExpired:
            self.process.kill()
            return ""


def press(address: str, token: str) -> float:
    """Time of a press until its answer [s]; infinite if it is not confirmed."""
    start_s = time.monotonic()
    try:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LIMIT_S)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("POST", "/api/stop", b'{"who": "Ada"}', headers)
            accepted = connection.getresponse().status == 200
    except OSError:
        return float("inf")
    return time.monotonic() - start_s if accepted else float("inf")


def pressed(address: str, token: str, presses: int) -> list[float]:
    """The times of presses one after the other [s]."""
    times_s = []
    for _ in range(presses):
        times_s.append(press(address, token))
        threading.Event().wait(PAUSE_S)
    return times_s


def percentiles_ms(times_s: list[float]) -> list[float]:
    """50 %, 99 % and the largest of the presses that were confirmed [ms]."""
    confirmed = [one for one in times_s if np.isfinite(one)]
    return np.percentile(1e3 * np.array(confirmed), [50, 99, 100]).round(1).tolist() if confirmed else []


def submit(address: str, archive: bytes, token: str, in_form: bool) -> int:
    """Status of a submission, whose token stands in the header or in the form; 0 if there is no answer."""
    field = f'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n{token}\r\n'.encode() if in_form else b""
    head = b'--x\r\nContent-Disposition: form-data; name="archive"; filename="a.zip"\r\n\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    if token and not in_form:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LIMIT_S)
        with contextlib.closing(connection):
            connection.request("POST", "/api/submissions", field + head + archive + b"\r\n--x--\r\n", headers)
            return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0


@contextlib.contextmanager
def attacked(address: str, counts: dict[str, int], reopened_per_s: float) -> Any:
    """While an attacker holds connections; gives a dictionary that has, afterwards, how many were opened."""
    attacker, seen = Program("attack", address, json.dumps(counts), str(reopened_per_s)), {}
    try:
        attacker.line("attacking")
        threading.Event().wait(3.0)
        yield seen
    finally:
        words = attacker.end().strip().splitlines()
        seen.update(json.loads(words[-1]) if words else {})


def measure_stop(options: argparse.Namespace, folder: Path, tokens: Path | None) -> dict[str, Any]:
    server = Program("monitor", str(folder), str(tokens or ""), descriptors=options.descriptors)
    try:
        address, token = server.line("http://"), TOKEN if tokens else ""
        part = options.connections // 3
        counts = {"idle": options.connections - 2 * part, "half": part, "slow": part, "websocket": options.websockets}
        quiet_s = pressed(address, token, options.presses)
        with attacked(address, counts, options.reopened) as seen:
            attacked_s = pressed(address, token, options.presses)
        return {
            "presses": options.presses,
            "lost": int(np.sum(np.isinf(attacked_s))),
            "quiet_p50_p99_max_ms": percentiles_ms(quiet_s),
            "attacked_p50_p99_max_ms": percentiles_ms(attacked_s),
            "opened_by_the_attacker": seen,
        }
    finally:
        server.end()


def measure_submissions(options: argparse.Namespace, folder: Path, tokens: Path | None) -> dict[str, Any]:
    from merton.leaderboard.submissions import packing
    from merton.leaderboard.submissions.manifest import NO_WEIGHTS
    from merton.results.store import ResultStore

    server = Program("board", str(folder), str(tokens or ""), descriptors=options.descriptors)
    try:
        address = server.line("http://").partition("the board is at ")[2].split(";")[0]
        with ResultStore(folder / "results.sqlite", read_only=True) as store:
            archive = packing.make_submission(store, "servo", OWNER, "1.0", NO_WEIGHTS, dataset="study")
        part, uploads, token = options.connections // 3, options.websockets, TOKEN if tokens else ""
        counts = {"idle": options.connections - 2 * part, "half": part, "slow": part, "upload": uploads}
        with attacked(address, counts, options.reopened) as seen:
            start_s = time.monotonic()
            answers = Counter(submit(address, archive, token, bool(i % 2)) for i in range(SUBMISSIONS))
        return {
            "submissions": SUBMISSIONS,
            "statuses": {str(status): count for status, count in sorted(answers.items())},
            "mean_ms": round(1e3 * (time.monotonic() - start_s) / SUBMISSIONS, 1),
            "opened_by_the_attacker": seen,
        }
    finally:
        server.process.terminate()
        server.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--websockets", type=int, default=50, help="of the monitor; half-sent uploads of the board")
    parser.add_argument("--presses", type=int, default=100)
    parser.add_argument("--descriptors", type=int, default=1024, help="limit of the servers' file descriptors")
    parser.add_argument("--reopened", type=float, default=2000, help="connections a second, opened after one was lost")
    parser.add_argument("--open", action="store_true", help="servers without tokens")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        folder, tokens = Path(where), None
        if not options.open:
            tokens = folder / "tokens.yaml"
            tokens.write_text(f"tokens: {{{OWNER}: {hashlib.sha256(TOKEN.encode()).hexdigest()}}}\n", encoding="utf-8")
        found = {
            "stop": measure_stop(options, folder, tokens),
            "board": measure_submissions(options, folder, tokens),
            "descriptors": options.descriptors,
            "load_average": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] in ("monitor", "board"):
        serve = serve_monitor if sys.argv[1] == "monitor" else serve_board
        serve(Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3] else None)
    elif len(sys.argv) > 3 and sys.argv[1] == "attack":
        attack(sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4]))
    else:
        main()
