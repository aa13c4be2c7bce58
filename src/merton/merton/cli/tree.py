"""The tree of commands: groups that look alike, the page of `merton --help`, and names of earlier releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from merton.cli.console import STDOUT, print_err
from merton.errors import InputError, MissingDependencyError, install_line, near_miss

PANELS = ("Start here", "Studies", "Boards", "Data", "Lab")
"""Of `merton --help`, in their order."""

STUDIES = (
    *("annotate", "study", "iqa", "curate", "people", "reproduce", "export", "replay"),
    "leaderboard answers",
)
"""Commands of the package merton_studies, by which one that is called without it says what to install."""

MOVED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("serve",): ("model", "serve"),
    ("models",): ("model",),
    ("version",): ("--version",),
    ("leaderboard", "pack"): ("submission", "pack"),
    ("leaderboard", "check"): ("submission", "check"),
    ("leaderboard", "submit"): ("submission", "send"),
    ("leaderboard", "withdraw"): ("submission", "withdraw"),
    ("leaderboard", "list"): ("submission", "list"),
}
"""Beginnings of command lines that were, and the present ones."""


class _PlainFlags:
    """Flags without a type: `--resume`, not `--resume <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters of the command, flags with an empty type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_bool_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a line; raises InputError with the near one for a name that is none."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            full = f"{ctx.command_path} {name}"
            if full.partition(" ")[2] in STUDIES:
                raise MissingDependencyError(f"`{full}` needs the package merton-studies: {install_line('studies')}")
            near = self._in_a_group(name, exactly=True) or near_miss(name, self.commands) or self._in_a_group(name)
            hint = f"did you mean `{ctx.command_path} {near}`? " if near else ""
            raise InputError(
                f"`{ctx.command_path}` has no command {name!r}; {hint}`{ctx.command_path} --help` lists all"
            )
        return super().resolve_command(ctx, args)

    def _in_a_group(self, name: str, exactly: bool = False) -> str | None:
        """The command of a group below this one that a name may stand for, with its group."""
        below = {
            command: group_name
            for group_name, group in self.commands.items()
            if isinstance(group, Group)
            for command in group.commands
        }
        near = name if name in below else None if exactly else near_miss(name, below)
        return None if near is None else f"{below[near]} {near}"


class App(typer.Typer):
    """A group to which functions are added as commands; alone it shows its help."""

    def __init__(self, help: str, cls: type[TyperGroup] = Group, **settings: Any) -> None:
        super().__init__(help=help, cls=cls, no_args_is_help=True, pretty_exceptions_enable=False, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """As `typer.Typer.command`."""
        return super().command(name, **{"cls": Command, **settings})

    def add(self, panel: str, name: str, command: Callable[..., Any] | typer.Typer, line: str) -> None:
        """Add a command or a group, with its panel (of `PANELS`) and its line there."""
        if isinstance(command, typer.Typer):
            self.add_typer(command, name=name, short_help=line, rich_help_panel=panel)
        else:
            self.command(name, short_help=line, rich_help_panel=panel)(command)


class Root(Group):
    """`merton` itself: its help fits a screen, and earlier names of commands still work."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the present name of a command in the place of an earlier one."""
        present = renamed(args)
        if present is not None:
            old, new, args = present
            print_err(f"merton: `merton {old}` is now `merton {new}`; the old name will end")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the commands by panel, one line each."""
        panels: dict[str, list[Any]] = {panel: [] for panel in PANELS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if not command.hidden:
                panels[command.rich_help_panel].append(command)
        width = 2 + max(len(command.name) for commands in panels.values() for command in commands)
        _print(Text("Usage: merton COMMAND ...       merton COMMAND --help says more"), Text(f"\n{self.help}\n"))
        for panel, commands in panels.items():
            _print(Text(panel, style="bold"))
            for command in commands:
                _print(Text.assemble("  ", (command.name.ljust(width), "cyan"), command.short_help or command.help))
        options = [" ".join(param.opts) for param in self.get_params(ctx) if not param.hidden]
        _print(Text(f"\nOptions: {', '.join(options)}"))


def _print(*lines: Text) -> None:
    for line in lines:
        STDOUT.print(line, highlight=False, soft_wrap=True)


def renamed(args: Sequence[str]) -> tuple[str, str, list[str]] | None:
    """The old name of a command line that begins with one, the present name, and the line with that; else None."""
    if args[:1] == ["replay"] and (moved := _replay(list(args[1:]))) is not None:
        new, rest = moved
        return "replay", " ".join(new), [*new, *rest]
    for old, present in MOVED.items():
        if tuple(args[: len(old)]) == old:
            return " ".join(old), " ".join(present), [*present, *args[len(old) :]]
    return None


def _replay(rest: list[str]) -> tuple[tuple[str, str], list[str]] | None:
    """`merton replay FILE --publish` or `--repair NEW` as a command of `merton recording`, and its arguments.

    None for the present `merton replay`. Without either option it was `merton recording rescore`, which it now names.
    """
    if "--publish" in rest:
        return ("recording", "play"), [word for word in rest if word != "--publish"]
    if any(word.partition("=")[0] == "--repair" for word in rest):
        return ("recording", "repair"), [word.replace("--repair", "--out", 1) for word in rest]
    return None
