"""`merton curate answer`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import from_here, print_out
from merton.errors import InputError
from merton_studies.cli.annotate import default_cache

FEWEST_DIGITS = 8
"""Of a key."""


def answer_command(
    key: Annotated[
        list[str], typer.Argument(help="Keys of answers, or their first digits: in messages, and whole in calls.jsonl.")
    ],
    cache: Annotated[
        Path | None,
        typer.Option(help="File of models' answers; the user's, if not given. A writer's is OUT/answers.sqlite."),
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Delete them, so that the next start asks again.")] = False,
) -> None:
    """Show what a model answered in a role, word for word, or have it forgotten.

    A forgotten answer is asked for with a temperature and another seed, since a greedy model would say the same again.
    """
    from merton_studies.annotate.cache import Cache

    file = cache or default_cache()
    if not file.is_file():
        raise InputError(f"there is no file of answers {file}; name one with --cache")
    with Cache(file) as answers:
        keys = [_one(beginning, answers.named(beginning), file) for beginning in map(_digits, key)]
        found = answers.find(keys)
        for one in dict.fromkeys(keys):
            print_out(_told(one, json.loads(found[one].response), found[one].latency_s))
        if forget:
            answers.forget(list(dict.fromkeys(keys)))
            print_out(f"forgotten, {len(set(keys))} of {from_here(file)}: the next start asks again")


def _digits(key: str) -> str:
    found = key.strip().lower()
    if not re.fullmatch(rf"[0-9a-f]{{{FEWEST_DIGITS},64}}", found):
        raise InputError(f"a key has {FEWEST_DIGITS} to 64 hexadecimal digits, got {key!r}")
    return found


def _one(beginning: str, keys: list[str], file: Path) -> str:
    if len(keys) != 1:
        found = "no answer" if not keys else f"{len(keys)} answers"
        raise InputError(f"{file} has {found} whose key begins with {beginning}")
    return keys[0]


def _told(key: str, value: dict[str, object], latency_s: float) -> str:
    """An answer of any command with what is known of its call."""
    asked = value.get("asked")
    how = ", ".join(f"{name} {part}" for name, part in asked.items()) if isinstance(asked, dict) else "how is not known"
    if "failed" in value:
        text = f"no answer: {value['failed']}"
    else:
        text = str(value["text"]) if "text" in value else json.dumps(value)
    cut = ", cut off" if value.get("truncated") else ""
    return f"{key} ({how}, {latency_s:.1f} s{cut}):\n{text}\n"
