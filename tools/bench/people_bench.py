"""Fifty raters at once answer 10,000 times while their server is killed (kill -9) twenty times: nothing may be lost.

    .venv/bin/python tools/bench/people_bench.py [--raters 50] [--answers 200] [--kills 20] [--pause 0.5] [--seed 0]

Each rater asks for work, pauses (uniform, 0 to twice `--pause` seconds; people take longer), answers, and sends some of
the answers a second time, as a second tab would. An answer whose acknowledgement did not arrive is sent again with the
same id until one does. The kills fall at random numbers of acknowledged answers. Then the record is compared with
what was acknowledged. Times are those of requests that began and ended between two kills, seen by the raters, who
share the machine with the server; the first answers after a start are among them. Before that, the ledger alone: as
many threads that save without a pause. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton.config import dumps, load
from merton.web.access import listening
from merton_studies.people.invitations import LinkFile, invite
from merton_studies.people.ledger import Answer, Ledger, Slot
from merton_studies.people.project import read_project

SENT_TWICE = 0.05
"""Share of the answers that are sent a second time after they were acknowledged."""
RETRY_S = 0.05
HOST = "127.0.0.1"


def make_study(folder: Path, raters: int, items: int) -> Path:
    """A project of small pictures that each rater judges; returns its file. The links are in the folder `links`."""
    (folder / "images").mkdir(parents=True)
    draw = np.random.default_rng(0)
    for number in range(items):
        picture = draw.integers(0, 255, (16, 16, 3), np.uint8)
        cv2.imwrite(str(folder / "images" / f"{number}.png"), picture)
    file = folder / "project.yaml"
    settings = {
        "name": "bench",
        "title": "A measurement",
        "protocol": "quality",
        "items": {"images": {"folder": "images"}},
        "raters": [f"rater {number}" for number in range(raters)],
        "ratings": raters,
        "attention": {"least_s": 0.0},
    }
    file.write_text(dumps(settings))
    invite(read_project(file).project, folder / "links", f"http://{HOST}")
    return file


def served(file: Path, port: int) -> int:
    """Start `merton people serve` as a process of its own; returns its id when it listens."""
    tokens = file.parent / "links" / "tokens.yaml"
    command = ["-m", "merton", "people", "serve", str(file), "--port", str(port), "--tokens", str(tokens)]
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if not process.stdout.readline():
        raise SystemExit("the server did not start")
    return process.pid


@dataclass
class Bench:
    """Raters, their server, and what was acknowledged.

    Attributes:
        file: of the project, of `make_study`.
        start: starts the server on a port and returns the id of its process, a child of this one, when it listens.
        kills: how often it is killed.
        pause_s: mean time between getting work and answering [s].
        seed: of everything random.
    """

    file: Path
    start: Callable[[Path, int], int]
    kills: int
    pause_s: float
    seed: int = 0
    acknowledged: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Id of an answer to name of the rater, number of the slot and score."""
    saving_ms: list[float] = field(default_factory=list)
    dealing_ms: list[float] = field(default_factory=list)
    starting_s: list[float] = field(default_factory=list)
    resent: int = 0
    lives: int = 0
    """Grows when the server has begun to listen, and when it is killed: odd while it lives."""

    def run(self) -> dict[str, Any]:
        """Do all of it; returns figures. Raises AssertionError if an acknowledged answer is lost or doubled."""
        with listening(HOST, 0) as bound:
            self._port = bound.getsockname()[1]
        links = load(self.file.parent / "links" / "links.yaml", LinkFile).links
        self._tokens = {name: link.split("#")[1] for name, link in links.items() if name.startswith("rater")}
        self._total = len(self._tokens) * len(list((self.file.parent / "images").iterdir()))
        self._pid = 0
        try:
            began = time.perf_counter()
            asyncio.run(self._all())
            took_s = time.perf_counter() - began
        finally:
            self._kill()
        return {**self._compared(), "answers_per_s": self._total / took_s, **self._times()}

    async def _all(self) -> None:
        self._progress = asyncio.Condition()
        await self._begin()
        await asyncio.gather(self._killer(), *(self._rate(name) for name in self._tokens))

    async def _begin(self) -> None:
        began = time.perf_counter()
        self._pid = await asyncio.to_thread(self.start, self.file, self._port)
        while True:
            try:
                await self._once("GET", "/api/session", "")
                break
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(RETRY_S)
        self.starting_s.append(time.perf_counter() - began)
        self.lives += 1

    def _kill(self) -> None:
        if self._pid:
            self.lives += 1
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    async def _killer(self) -> None:
        draw = random.Random(self.seed)
        for count in sorted(draw.sample(range(1, self._total), self.kills)):
            async with self._progress:
                await self._progress.wait_for(lambda count=count: len(self.acknowledged) >= count)
            await asyncio.sleep(draw.uniform(0, RETRY_S))
            self._kill()
            await self._begin()

    async def _rate(self, name: str) -> None:
        draw = random.Random(f"{self.seed} {name}")
        token = self._tokens[name]
        await self._request("GET", "/api/session", token)  # opens the page
        while True:
            work = await self._request("GET", "/api/work", token, times=self.dealing_ms)
            if not work["slots"]:
                assert work["state"] == "done", work
                return
            await asyncio.sleep(draw.uniform(0, 2 * self.pause_s))
            number, score = work["slots"][0]["number"], draw.randint(1, 5)
            id = hashlib.sha256(f"{name} {number}".encode()).hexdigest()
            answer = {"id": id, "number": number, "seconds": 1.5, "answer": {"score": score}}
            await self._request("POST", "/api/answers", token, answer, self.saving_ms)
            self.acknowledged[id] = (name, number, score)
            async with self._progress:
                self._progress.notify_all()
            if draw.random() < SENT_TWICE:
                again = await self._request("POST", "/api/answers", token, answer)
                assert again == {"saved": False}, again
                self.resent += 1

    async def _request(
        self, method: str, path: str, token: str, body: Any = None, times: list[float] | None = None
    ) -> dict[str, Any]:
        """Ask until there is an answer; its time counts if the server was there from beginning to end."""
        while True:
            began, life = time.perf_counter(), self.lives
            try:
                status, answer = await self._once(method, path, token, body)
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(RETRY_S)
                continue
            if status == 503:  # ended by the kill
                await asyncio.sleep(RETRY_S)
                continue
            assert status == 200, (status, answer)
            if times is not None and life == self.lives and life % 2:
                times.append(1e3 * (time.perf_counter() - began))
            return answer

    async def _once(self, method: str, path: str, token: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self._port}\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        reader, writer = await asyncio.open_connection(HOST, self._port)
        try:
            writer.write(head.encode() + data)
            answer = await reader.readuntil(b"\r\n\r\n")
            status = int(answer.split(b" ", 2)[1])
            length = next(
                (int(line[15:]) for line in answer.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
            )
            return status, json.loads(await reader.readexactly(length) or b"{}")
        finally:
            writer.close()

    def _compared(self) -> dict[str, int]:
        """The record against what was acknowledged."""
        loaded = read_project(self.file)
        with Ledger(loaded.record, loaded.project.name, loaded.definition) as ledger:
            names = {rater.id: rater.name for rater in ledger.raters()}
            answers = ledger.answers(undone=True)
        stored = {answer.id: (names[answer.rater], answer.number, answer.answer["score"]) for answer in answers}
        lost = [id for id, content in self.acknowledged.items() if stored.get(id) != content]
        asked = {(answer.rater, answer.item) for answer in answers}
        assert not lost, f"{len(lost)} acknowledged answers are lost or changed, such as {lost[0]}"
        assert len(answers) == len(stored) == len(asked) == self._total, "an item was answered twice, or never"
        return {
            "raters": len(self._tokens),
            "answers": len(answers),
            "acknowledged": len(self.acknowledged),
            "lost": len(lost),
            "doubled": len(answers) - len(asked),
            "sent_twice": self.resent,
            "kills": self.kills,
        }

    def _times(self) -> dict[str, float]:
        def figures(name: str, times: list[float]) -> dict[str, float]:
            return (
                {f"{name}_p{share}_ms": float(np.percentile(times, share)) for share in (50, 99, 100)} if times else {}
            )

        start_s = float(np.median(self.starting_s))
        return {**figures("saving", self.saving_ms), **figures("dealing", self.dealing_ms), "start_s": start_s}


def ledger_alone(folder: Path, raters: int, answers: int) -> dict[str, float]:
    """Threads that have items handed out and save answers without a pause, in one process."""
    times: list[float] = []
    with Ledger(folder / "ledger.sqlite", "bench", "{}") as ledger:
        names = [ledger.register(f"rater {number}").id for number in range(raters)]

        def work(name: str) -> None:
            for number in range(1, answers + 1):
                slot = Slot(name, number, f"item {number}", "design", "2026-01-01T00:00:00.000+00:00")
                ledger.hand_out([slot])
                answer = Answer(
                    f"{name}-{number}", name, number, slot.item, "design", {"score": 3}, 1.5, slot.issued_utc
                )
                began = time.perf_counter()
                ledger.save(answer)
                times.append(1e3 * (time.perf_counter() - began))

        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        per_s = len(times) / (time.perf_counter() - began)
        assert len(ledger.answers()) == raters * answers
    return {"ledger_answers_per_s": per_s, "ledger_saving_p99_ms": float(np.percentile(times, 99))}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--answers", type=int, default=200, help="of each rater")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.5, help="mean, before an answer [s]")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="merton_people_") as place:
        alone = ledger_alone(Path(place), chosen.raters, chosen.answers)
        file = make_study(Path(place) / "study", chosen.raters, chosen.answers)
        bench = Bench(file, served, chosen.kills, chosen.pause, chosen.seed)
        print(json.dumps({**bench.run(), **alone}, indent=1))


if __name__ == "__main__":
    main()
