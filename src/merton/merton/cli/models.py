"""`merton model`: the catalogue, one entry of it, whether a model can be used here, and a class behind a protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from merton.cli.console import STDOUT, print_cut, print_err, print_out, working
from merton.cli.tree import App
from merton.config import dumps
from merton.errors import InputError, UnknownNameError
from merton.extras import ready
from merton.models.base import Finding
from merton.models.catalogue import USABLE, Catalogue, CatalogueEntry, NamedEntry, examine, usable_here

if TYPE_CHECKING:
    from merton.cognition.models.base import ModelEntry
    from merton.decision.models.base import PolicyEntry

app = App("The catalogue of models, and which of them work here.")


@app.command("list")
def list_command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Models with all of these in kind, name or description.")
    ] = None,
    usable: Annotated[bool, typer.Option("--usable", help="Those alone that need nothing further here.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON, for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables of docs/use/models.md.")] = False,
) -> None:
    """List the models: VLMs, then VLAs, and which can be used here; no server is asked, `merton model check` asks."""
    if markdown:
        typer.echo(f"{conventions_table()}\n\n{tables()}")
        return
    wanted = [word.lower() for word in words or ()]
    entries = [
        (kind, entry)
        for kind, entry in _entries()
        if all(word in f"{kind} {entry.name} {entry.description} {entry.paper}".lower() for word in wanted)
    ]
    if not entries:
        raise InputError(f"no model has {' and '.join(map(repr, wanted))} in its name or description")
    needs = {} if as_json and not usable else {(kind, entry.name): usable_here(entry) for kind, entry in entries}
    entries = [(kind, entry) for kind, entry in entries if not usable or needs[kind, entry.name] == USABLE]
    if as_json:
        typer.echo(json.dumps([{"kind": kind, **entry.model_dump()} for kind, entry in entries], indent=1))
        return
    rows = [
        (
            *(kind, entry.name, needs[kind, entry.name]),
            *(f"{entry.memory_gb:g} GB" if entry.memory_gb else "", entry.description),
        )
        for kind, entry in entries
    ]
    print_cut(("kind", "name", "usable here", "memory", "description"), rows)
    for kind, entry in entries:
        if file := _catalogues()[kind].file_of(entry.name):
            print_err(f"{kind} {entry.name} is from {file}")
    for convention, file in _labs_conventions():
        print_err(f"convention {convention} is from {file}")
    ready = sum(need == USABLE for need in needs.values())
    print_err(f"{ready} of {len(needs)} can be used here; `merton model check NAME` says what another one needs")


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="A name of `merton model list`, or of a convention.")],
) -> None:
    """Print the entry of a model or convention as YAML; a copy in a catalogue of your own replaces it."""
    from merton.decision.models.conventions import CONVENTIONS

    if name in CONVENTIONS and not any(entry.name == name for _, entry in _entries()):
        if (entry := CONVENTIONS[name].entry) is None:
            raise InputError(f"convention {name!r} is written in Python, in merton/decision/models/conventions.py")
        typer.echo(as_yaml([("convention", entry)]), nl=False)
        return
    typer.echo(as_yaml(_named(name)), nl=False)


@app.command("check")
def check_command(
    name: Annotated[str | None, typer.Argument(help="A name of `merton model list`; without it, all.")] = None,
) -> None:
    """Check models without downloading anything; exit code 1 if something is missing.

    Loads processor and configuration if the checkpoint is on disk, sends a request if the model is behind a server,
    and has the model answer its example if its weights are installed.
    """
    checked = missing = 0
    for kind, entry in _entries() if name is None else _named(name):
        STDOUT.print(f"{kind} {entry.name}", highlight=False, style="bold")
        with working(f"checking: {entry.name}"):
            findings = [*_convention(entry), *examine(entry)]
        for finding in findings:
            mark = "[green]ok     [/]" if finding.ok else "[red]missing[/]"
            STDOUT.print(f"  {mark} {finding.subject:<10} {escape(finding.detail)}", highlight=False, soft_wrap=True)
            if finding.remedy:
                print_out(f"          {'':<10} {finding.remedy}")
        checked += 1
        missing += not all(finding.ok for finding in findings)
    if name is None:
        print_out(f"{checked - missing} of {checked} can be used here")
    if missing:
        raise typer.Exit(1)


@app.command("serve")
def serve_command(
    model: Annotated[str, typer.Argument(help="MODULE:CLASS; found in this folder or installed.")],
    protocol: Annotated[str, typer.Option(help="openpi, act or chat.")],
    host: Annotated[str, typer.Option(help="Where to listen. Nothing but loopback is private.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and says which.")] = 8000,
    name: Annotated[list[str] | None, typer.Option(help="A further host name of the server.")] = None,
) -> None:
    """Put a model class behind a protocol until Ctrl-C; see docs/use/serving.md."""
    from merton.models import serving

    if protocol == "openpi":
        ready("the protocol openpi", "remote")
    try:
        serving.serve(model, protocol, host, port, name or ())
    except serving.ServingError as error:
        raise InputError(str(error)) from None


def _convention(entry: ModelEntry | PolicyEntry) -> list[Finding]:
    """The meaning of a policy's numbers, as a finding."""
    means = getattr(entry, "means", None)
    return [] if means is None else [Finding("convention", True, f"{means.name}: {means.meaning}")]


def as_yaml(entries: Iterable[tuple[str, NamedEntry]]) -> str:
    """Entries (kind, entry) as a file of the catalogue; fields at their default are left out."""
    documents: dict[str, list[dict[str, Any]]] = {}
    for kind, entry in entries:
        documents.setdefault(kind, []).append(entry.model_dump(mode="json", exclude_defaults=True))
    return dumps(documents)


def tables() -> str:
    """The catalogue as Markdown tables, VLMs, then VLAs; below each, the models that share a sentence on evidence."""
    from merton.cognition.models.base import MODELS
    from merton.decision.models.base import POLICIES

    conventions = {name: entry.means for name, entry in POLICIES.items()}
    means = {name: f"`{found.name}`" if found else "Merton's" for name, found in conventions.items()}
    vlms = _table("image", {name: _image(entry) for name, entry in MODELS.items()}, list(MODELS.values()))
    vlas = _table("means", means, list(POLICIES.values()))
    return "\n".join(["### VLMs", "", *vlms, "", "### VLAs", "", *vlas])


def conventions_table() -> str:
    """The conventions of policies as two Markdown tables: their rows, and their sources."""
    from merton.decision.models.conventions import CONVENTIONS

    rows = ["| convention | a row is | rows |", "|---|---|---|"]
    sources = ["| convention | source |", "|---|---|"]
    for convention in CONVENTIONS.values():
        columns = " or ".join(str(count) for count in convention.columns)
        rows.append(f"| `{convention.name}` | {convention.meaning} | (n, {columns}) |")
        sources.append(f"| `{convention.name}` | {convention.source} |")
    return "\n".join([*rows, "", *sources])


def _table(fifth: str, fifths: Mapping[str, str], entries: Sequence[CatalogueEntry]) -> list[str]:
    """Lines of the table of `entries`, then of their evidence, each sentence once with all its models."""
    lines = [f"| name | paper's | checkpoint | adapter | {fifth} |", "|---|---|---|---|---|"]
    verified: dict[str, list[str]] = {}
    unverified: dict[str, list[str]] = {}
    for entry in entries:
        revision = f" @ `{entry.revision[:7]}`" if entry.revision else ""
        checkpoint = f"{entry.checkpoint}{revision}" if entry.checkpoint else "none"
        lines.append(
            f"| `{entry.name}` | {entry.paper or 'no'} | {checkpoint} | `{entry.adapter}` | {fifths[entry.name]} |"
        )
        verified.setdefault(entry.verified, []).append(f"`{entry.name}`")
        if entry.unverified:
            unverified.setdefault(entry.unverified, []).append(f"`{entry.name}`")
    for heading, named in (("Verified:", verified), ("Not verified without weights or server:", unverified)):
        lines += ["", heading, "", *(f"- {', '.join(names)}: {sentence}." for sentence, names in named.items())]
    return lines


def _image(entry: ModelEntry) -> str:
    size = "×".join(str(length) for length in entry.image.size_px or ()) or "own size"
    return f"{size} {entry.image.resize}, by {entry.image.by}" if entry.checkpoint else "as it is"


def _catalogues() -> dict[str, Catalogue[Any]]:
    from merton.cognition.models.base import MODELS
    from merton.decision.models.base import POLICIES

    return {"vlm": MODELS, "vla": POLICIES}


def _labs_conventions() -> list[tuple[str, Path]]:
    from merton.decision.models.conventions import CONVENTIONS

    return [(name, file) for name in CONVENTIONS if (file := CONVENTIONS.file_of(name))]


def _entries() -> Iterator[tuple[str, ModelEntry | PolicyEntry]]:
    for kind, catalogue in _catalogues().items():
        yield from ((kind, entry) for entry in catalogue.values())


def _named(name: str) -> list[tuple[str, ModelEntry | PolicyEntry]]:
    found = [(kind, entry) for kind, entry in _entries() if entry.name == name]
    if not found:
        raise UnknownNameError("model", name, (entry.name for _, entry in _entries()))
    return found
