"""The tree of commands: groups that look alike, and the page of `merton --help`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from merton.cli.console import STDOUT
from merton.errors import InputError, MissingDependencyError, UnknownNameError, near_miss, studies_line
from merton.extras import ready

Function = TypeVar("Function", bound=Callable[..., Any])

PANELS = ("Start here", "Studies", "Boards", "Data", "Lab")
"""Of `merton --help`, in their order."""

STUDIES = (
    *("annotate", "study", "iqa", "curate", "people", "reproduce", "export", "whatif"),
    "distort dataset",
    "leaderboard answers",
    "leaderboard evaluate",
)
"""Commands of the package merton_studies, by which one that is called without it says what to install."""


RENAMED = {"replay": "whatif"}
"""A command's earlier name to its name now."""


class _PlainFlags:
    """Flags without a type: `--resume`, not `--resume <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters of the command, flags with an empty type; `--out`, the place of a result, is `-o`, too."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if "--out" in param.opts and "-o" not in param.opts:
                param.opts.insert(0, "-o")
            if getattr(param, "is_bool_flag", False):
                param.metavar = ""
        return params


def needs(*extras: str) -> Callable[[Function], Function]:
    """Mark the function of a command with the extras that it needs; `Command` asks for them before it is called."""

    def mark(function: Function) -> Function:
        function.needs = extras  # type: ignore[attr-defined]
        return function

    return mark


class Command(_PlainFlags, TyperCommand):
    """A command, which asks for the extras of its function (`needs`) before it works.

    An error about a missing argument or option has all of them in `missing`, and further words.
    """

    def invoke(self, ctx: Any) -> Any:
        """Call the function; raises MissingDependencyError, with all that is missing, before that."""
        ready(f"`{ctx.command_path}`", *getattr(self.callback, "needs", ()))
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a line, as every command."""
        words = list(args)  # a parser takes its words away
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "MissingParameter":
                given, further, _ = self.make_parser(ctx).parse_args(args=words)
                params = [param for param in self.get_params(ctx) if param.required]
                error.further = further  # type: ignore[attr-defined]
                error.missing = [param for param in params if given.get(param.name) in (None, [], ())]  # type: ignore[attr-defined]
            raise


class Group(_PlainFlags, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a line; raises InputError with the near one for a name that is none."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            if name in RENAMED and ctx.parent is None:
                raise InputError(f"`merton {name}` is called `merton {RENAMED[name]}` now")
            full = f"{ctx.command_path} {name}"
            if full.partition(" ")[2] in STUDIES:
                raise MissingDependencyError(f"`{full}` needs the package merton-studies: {studies_line()}")
            root = ctx.find_root()
            places = (
                (ctx, self._in_a_group(name, exactly=True) or near_miss(name, self.commands) or self._in_a_group(name)),
                (root, root.command._in_a_group(name, exactly=True)),
            )
            hint = next((f"did you mean `{place.command_path} {near}`? " for place, near in places if near), "")
            raise InputError(
                f"`{ctx.command_path}` has no command {name!r}; {hint}`{ctx.command_path} --help` lists all"
            )
        return super().resolve_command(ctx, args)

    def _in_a_group(self, name: str, exactly: bool = False) -> str | None:
        """The command of a group below this one that a name may stand for, with its group: the first of that name."""
        below = {
            command: group_name
            for group_name, group in reversed(list(self.commands.items()))
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
        """Add a command or a group, with its panel and its line there; raises UnknownNameError for none of `PANELS`."""
        if panel not in PANELS:
            raise UnknownNameError("panel", panel, PANELS)
        if isinstance(command, typer.Typer):
            self.add_typer(command, name=name, short_help=line, rich_help_panel=panel)
        else:
            self.command(name, short_help=line, rich_help_panel=panel)(command)


class Root(Group):
    """`merton` itself: its help fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the commands by panel, one line each."""
        panels: dict[str, list[Any]] = {panel: [] for panel in PANELS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if not command.hidden:
                panels[command.rich_help_panel].append(command)
        width = 2 + max(len(command.name) for commands in panels.values() for command in commands)
        _print(Text("Usage: merton COMMAND ...       merton COMMAND --help says more"), Text(f"{self.help}\n"))
        for panel, commands in panels.items():
            _print(Text(panel, style="bold"))
            for command in commands:
                _print(Text.assemble("  ", (command.name.ljust(width), "cyan"), command.short_help or command.help))
        options = [" ".join(param.opts) for param in self.get_params(ctx) if not param.hidden]
        _print(Text(f"Options: {', '.join(options)}"))


def _print(*lines: Text) -> None:
    for line in lines:
        STDOUT.print(line, highlight=False, soft_wrap=True)
