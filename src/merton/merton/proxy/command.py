"""What `merton proxy` does: a run of episodes, opened or gone on with, and the server before a policy's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from merton.config import Model, validated
from merton.episodes.run import EpisodesRun
from merton.episodes.shown import load
from merton.errors import InputError
from merton.experiment.fields import Identifier
from merton.proxy.protocols import protocol_named
from merton.proxy.server import Server, run
from merton.proxy.stream import Keeper
from merton.proxy.upstream import Upstream

HARNESSES = {"vla-eval": "vla-eval", "openpi": "openpi-client", "act": "json-numpy"}
"""The package whose version is noted where it is installed beside Merton."""


def serve(
    listen: str,
    upstream: str,
    protocol: str,
    design: Path | None,
    runs: Path,
    name: str | None,
    resume: bool,
    agent: str,
    names: Iterable[str],
    say: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C, then close the run.

    Args:
        listen: HOST:PORT; port 0 takes a free one.
        upstream: address of the policy server.
        protocol: of `merton.proxy.protocols.PROTOCOLS`.
        design: file of the design; None with `resume`, which takes the run's own.
        runs, name: where the run is, and what it is called.
        resume: go on with the run of that name.
        agent: the policy's name in the record.
        names: further host names of the proxy.
        say: prints a line.

    Raises:
        InputError: an address, a name or a design that cannot be.
    """
    spoken, behind = protocol_named(protocol), Upstream.at(upstream)
    host, port = _address(listen)
    validated(_Agent, {"agent": agent}, "--agent")
    record = _opened(runs, name, design, resume, {"protocol": protocol, "upstream": upstream, **_harness(protocol)})
    keeper = Keeper(record, spoken, say)
    try:
        began_s = time.monotonic()
        load(record.design.distortions)
        say(f"the design's distortions are loaded, in {time.monotonic() - began_s:.1f} s")
        server = Server(keeper, behind, host, port, agent, names, say)
        for line in record.said:
            say(line)
        say(f"run: {record.path}")
        run(server)
    finally:
        keeper.close()
    for line in closing(keeper):
        say(line)


class _Agent(Model):
    agent: Identifier


def _opened(runs: Path, name: str | None, design: Path | None, resume: bool, source: dict[str, str]) -> EpisodesRun:
    if not resume:
        if design is None:
            raise InputError("a new run needs --design FILE, the conditions of its scenes")
        return EpisodesRun.create(runs, design, name, source)
    if name is None:
        raise InputError("--resume goes on with the run that --name names")
    return EpisodesRun.open(runs / name)


def _harness(protocol: str) -> dict[str, str]:
    try:
        return {"harness": f"{HARNESSES[protocol]} {version(HARNESSES[protocol])}"}
    except PackageNotFoundError:
        return {}


def _address(listen: str) -> tuple[str, int]:
    parts = urlsplit(f"//{listen}" if ":" in listen else f"//127.0.0.1:{listen}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise InputError(f"--listen takes HOST:PORT, such as 127.0.0.1:8001, got {listen!r}")
    return host, port


def closing(keeper: Keeper) -> list[str]:
    """What there is to say at the end: episodes, what went wrong, and the added time."""
    counts = keeper.run.counts
    lines = [
        f"{counts.begun} episodes: {counts.recorded} recorded, {counts.without_end} of them without an end, "
        f"{counts.lost} lost, {counts.beyond} beyond the design"
    ]
    found = keeper.latency.summary()
    if found["n"]:
        lines.append(f"added to an observation: p50 {found['p50_ms']} ms, p99 {found['p99_ms']} ms, of {found['n']}")
    if found["distorted"]:
        lines.append(
            f"distorting, beside that: p50 {found['distorting_p50_ms']} ms, p99 {found['distorting_p99_ms']} ms, of "
            f"{found['distorted']}"
        )
    seen = {key: count for key, count in keeper.counts.items() if key != "beyond"}
    if seen:
        lines.append("counted: " + ", ".join(f"{key} {count}" for key, count in sorted(seen.items())))
    return lines
