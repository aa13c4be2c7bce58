"""The time that `merton proxy` adds to an observation, in three processes on this machine: harness, proxy, policy.

    .venv/bin/python tools/bench/proxy_bench.py [--requests 1000] [--steps 50]

The policy answers at once. Half of the episodes are undistorted, half under white_noise at level 3; a picture is
256 x 256 pixels. `added` is the proxy's own figure, from the first byte of a message until it is passed on, both ways,
without the distortion itself; `end_to_end` is what the harness waits in all. Milliseconds. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from merton.episodes.folder import EpisodesFolder
from merton.models.serving import pack, to_json

DESIGN = "name: bench\ndistortions: [white_noise]\nlevels: [0, 3]\n"
PICTURE = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
ACTION = np.zeros((10, 7))


def policy(protocol: str, told: Connection) -> None:
    """A server that answers at once, until its process is ended."""
    if protocol == "openpi":

        def answer(connection: ServerConnection) -> None:
            connection.send(pack({}))
            with suppress(ConnectionClosed):
                for _ in connection:
                    connection.send(pack({"actions": ACTION}))

        server = serve(answer, "127.0.0.1", 0, compression=None, max_size=None)
        told.send(server.socket.getsockname()[1])
        server.serve_forever()
    body = json.dumps(to_json(ACTION)).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # one write for head and body: of two, the second waits for an acknowledgement

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(http.server_address[1])
    http.serve_forever()


def openpi_episode(port: int, scene: int, steps: int) -> list[float]:
    """Seconds that the harness waits for each answer of an episode."""
    message = pack({"image": PICTURE, "prompt": "pick"})
    with connect(f"ws://127.0.0.1:{port}/?task=pick&scene={scene}", compression=None, max_size=None) as connection:
        connection.recv()

        def ask() -> float:
            began_s = time.perf_counter()
            connection.send(message)
            connection.recv()
            return time.perf_counter() - began_s

        return [ask() for _ in range(steps)]


def act_episode(port: int, scene: int, steps: int) -> list[float]:
    """The same over /act."""
    message = json.dumps(to_json({"image": PICTURE, "instruction": "pick"})).encode()
    connection = HTTPConnection("127.0.0.1", port)

    def ask(path: str, body: bytes) -> float:
        began_s = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        return time.perf_counter() - began_s

    ask_s = [ask("/act", message) for _ in range(steps)]
    connection.close()
    return ask_s


def call(port: int, path: str, said: dict[str, object]) -> None:
    """A control call."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", f"/merton/{path}", json.dumps(said), {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()


def quantiles(values_ms: list[float]) -> dict[str, float]:
    """p50 and p99."""
    p50, p99 = np.quantile(values_ms, (0.5, 0.99)).tolist()
    return {"p50_ms": round(p50, 2), "p99_ms": round(p99, 2), "n": len(values_ms)}


def measured(protocol: str, requests: int, steps: int) -> dict[str, dict[str, dict[str, float]]]:
    """Condition to figure to its quantiles."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=policy, args=(protocol, there), daemon=True)
    server.start()
    upstream = here.recv()
    with tempfile.TemporaryDirectory() as folder:
        design = Path(folder, "design.yaml")
        design.write_text(DESIGN)
        words = [sys.executable, "-m", "merton", "proxy", "--listen", "127.0.0.1:0", "--as", protocol]
        words += ["--upstream", f"http://127.0.0.1:{upstream}", "--design", str(design), "--name", "b"]
        proxy = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True)
        assert proxy.stderr is not None
        line = next(line for line in proxy.stderr if line.startswith(f"{protocol} at "))
        port = int(line.split()[2].rpartition(":")[2])
        waited: dict[int, list[float]] = {0: [], 3: []}
        for scene in range(max(1, requests // (2 * steps))):
            for level in waited:
                if protocol == "act":
                    call(port, "episode", {"task": "pick", "scene": scene})
                episode = openpi_episode if protocol == "openpi" else act_episode
                waited[level] += episode(port, scene, steps)
                call(port, "episode/end", {"success": True})
        proxy.send_signal(signal.SIGTERM)
        proxy.communicate()
        episodes = EpisodesFolder.read(Path(folder, "runs", "b")).episodes
    server.terminate()
    found = {}
    for level, name in ((0, "undistorted"), (3, "white_noise")):
        added = [past.end["added_ms"] for past in episodes if past.end and past.condition.level == level]
        found[name] = {
            "added": quantiles([value for own in added for value in own]),
            "added_to_first": quantiles([own[0] for own in added]),
            "end_to_end": quantiles([1e3 * value for value in waited[level]]),
        }
    return found


def main() -> None:
    """Measure both protocols."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=50)
    chosen = parser.parse_args()
    print(json.dumps({name: measured(name, chosen.requests, chosen.steps) for name in ("openpi", "act")}, indent=2))


if __name__ == "__main__":
    main()
