"""`merton world`: the catalogue of worlds, adding one to this machine, checking one, and serving one to others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from merton.cli.console import STDOUT, print_cut, print_err, print_out, working
from merton.cli.tree import App
from merton.errors import InputError
from merton.progress import OnStep

if TYPE_CHECKING:
    from merton.models.base import Finding
    from merton.worlds.entry import WorldEntry

app = App("The catalogue of worlds, places where trials happen; add one, check one, serve one.")


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON, for programs.")] = False,
) -> None:
    """List the worlds, and which are on this machine; none is started, `merton world check` starts one."""
    from merton.worlds.entry import WORLDS

    if as_json:
        typer.echo(json.dumps([_as_json(entry) for entry in WORLDS.values()], indent=1))
        return
    headings = ("name", "where", "tasks", "cameras", "versions, or its description")
    print_cut(headings, [_row(entry) for entry in WORLDS.values()])
    for name in WORLDS:
        if file := WORLDS.file_of(name):
            print_err(f"world {name} is from {file}")
    print_err("`merton world add NAME` adds one to this machine")


@app.command("add")
def add_command(
    name: Annotated[str, typer.Argument(help="A name of `merton world list`.")],
    python: Annotated[Path | None, typer.Option(help="The interpreter to make its environment with.")] = None,
) -> None:
    """Make a world's environment of its pinned packages, start it once, and keep its description; takes minutes.

    It lies in the folder MERTON_WORLDS, or ~/.local/share/merton/worlds. An environment of the same packages stays.
    """
    from merton.worlds.adding import add
    from merton.worlds.checking import summary
    from merton.worlds.entry import WORLDS
    from merton.worlds.environments import free_space, world_folder

    entry, folder = WORLDS[name], world_folder(name)
    if entry.requirements:
        print_err(f"into {folder}, where {_size(free_space(folder))} are free")
    added = add(entry, python, _stage)
    assert added.description is not None
    size = f", {_size(added.size_bytes)}" if added.environment else ""
    print_out(f"{name}: {summary(added.description)}{size}")


@app.command("check")
def check_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Names of `merton world list`; else all added ones.")
    ] = None,
) -> None:
    """Start worlds that were added, and check scenes, pictures, rows, forks and expert; exit code 1 if one is wrong.

    To the last bit and pixel: the first scene after another one, a row after looking, and what follows a fork.
    """
    from merton.worlds.checking import examined
    from merton.worlds.entry import WORLDS

    added = [entry for entry in WORLDS.values() if entry.is_hosted and _is_here(entry)]
    chosen = [WORLDS[name] for name in names] if names else added
    if not chosen:
        raise InputError("no world was added to this machine yet: `merton world add NAME`")
    wrong = 0
    for entry in chosen:
        STDOUT.print(entry.name, highlight=False, style="bold")
        findings = examined(entry)
        while finding := _next(findings, entry.name):
            mark = "[green]ok   [/]" if finding.ok else "[red]wrong[/]"
            STDOUT.print(f"  {mark} {finding.subject:<8} {escape(finding.detail)}", highlight=False, soft_wrap=True)
            wrong += not finding.ok
    if wrong:
        raise typer.Exit(1)


@app.command("serve")
def serve_command(
    name: Annotated[str, typer.Argument(help="A name of `merton world list`; added to this machine.")],
    host: Annotated[str, typer.Option(help="Where to listen. Nothing but loopback is private.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and says which.")] = 8010,
) -> None:
    """Serve a world to one client at a time, also of another machine, until Ctrl-C.

    An address that other machines reach needs a token, in MERTON_WORLD_TOKEN here and there.
    """
    from merton.worlds.entry import WORLDS
    from merton.worlds.serving import serve

    serve(WORLDS[name], host, port)


def _next(findings: Iterator[Finding], name: str) -> Finding | None:
    """The next finding, which may take a while; None at the end."""
    with working(f"checking: {name}"):
        return next(findings, None)


@contextmanager
def _stage(name: str) -> Iterator[OnStep]:
    """A moving sign, and after it a line with the time."""
    began_s = time.monotonic()
    with working(name) as say:
        yield lambda step: say(f"{name}: {step}")
    print_err(f"{time.monotonic() - began_s:5.0f} s  {name}")


def _is_here(entry: WorldEntry) -> bool:
    """Whether a world can be used: it is in this process, or was added and is the same since."""
    if not entry.is_hosted:
        return True
    try:
        entry.described()
    except InputError:
        return False
    return True


def _row(entry: WorldEntry) -> tuple[str, str, str, str, str]:
    """The line of a world: name, where, tasks, cameras, and versions of one that was added."""
    if not entry.is_hosted:
        return entry.name, "here", "", "", entry.description
    if not _is_here(entry):
        from merton.worlds.environments import read_added

        where = "not added" if read_added(entry.name) is None else "to be added again"
        return entry.name, where, "", "", entry.description
    from merton.worlds.environments import read_added

    description, added = entry.described(), read_added(entry.name)
    size = f"environment, {_size(added.size_bytes)}" if added and added.environment else "environment"
    versions = ", ".join(f"{package} {version}" for package, version in description.versions.items())
    counts = str(len(description.tasks)), str(len(description.cameras))
    return entry.name, entry.address or size, *counts, versions


def _as_json(entry: WorldEntry) -> dict[str, Any]:
    """All of a world's entry, and its description if it was added, else None."""
    described = entry.described().model_dump(mode="json") if entry.is_hosted and _is_here(entry) else None
    return {**entry.model_dump(mode="json"), "described": described}


def _size(size_bytes: int) -> str:
    """Such as "2.1 GB"."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e8 else f"{size_bytes / 1e6:.0f} MB"
