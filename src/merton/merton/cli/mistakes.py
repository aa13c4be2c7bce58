"""Mistyped command lines in one sentence: which command, what is wrong, and what was probably meant."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from merton.config import refusal
from merton.errors import did_you_mean


def sentence(error: Any) -> str:
    """The sentence for an error of the command line: an unknown option, a missing argument, a wrong value.

    Args:
        error: as typer raises it, with its context in `ctx`.
    """
    context = error.ctx
    command = context.command_path if context is not None else "merton"
    more = f"`{command} --help` says more"
    option = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if type(error).__name__ == "NoSuchOption":
        known = [name for each in context.command.get_params(context) for name in (*each.opts, *each.secondary_opts)]
        near = did_you_mean(str(option), [name for name in known if name.startswith("-")])
        return f"`{command}` has no option {option}; {near}{more}"
    if type(error).__name__ == "MissingParameter":
        names = [_name(each) for each in getattr(error, "missing", [parameter])]
        if names == ["--out"] and (further := getattr(error, "further", ())):
            return f"`{command}`: the place of the result is an option: --out {further[-1]}; {more}"
        return f"`{command}` needs {' and '.join(names)}; {more}"
    if isinstance(error.__cause__, ValidationError):
        reason = refusal(error.__cause__.errors(include_url=False)[0]).replace("got the text ", "got ")
        return f"`{command}`: {_name(parameter)} {reason}"
    text = error.format_message()
    if option is not None:
        return f"{option} {'takes no value' if 'does not take' in text else 'needs a value'}"
    if extra := re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        return f"`{command}` has no use for the further words {extra[1]!r}; {more}"
    return f"`{command}`: {text[:1].lower()}{text[1:].rstrip('.')}; {more}"


def _name(parameter: Any) -> str:
    """An option as it is typed, an argument as the help shows it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).upper()
