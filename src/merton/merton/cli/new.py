"""`merton new`: a commented experiment, by questions or by options."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from merton.cli.console import own_command, print_err, print_out
from merton.errors import InputError
from merton.extras import lacking

DEFAULTS = {
    "agents": "glance,hold",
    "tasks": "test-place,test-press",
    "distortions": "gaussian_blur,jpeg",
    "levels": "5",
    "scenes": "4",
}
QUESTIONS = {
    "agents": "Agents: VLAs, or VLM+VLA (merton model list)",
    "tasks": "Tasks, such as pick or test-pick (docs/use/tasks.md)",
    "distortions": "Distortions (merton distort list)",
    "levels": "Levels 1 to 5, or one, or staircase",
    "scenes": "Scenes of each task",
}


def new_command(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The new file, such as mine.yaml.")],
    agents: Annotated[str | None, typer.Option(help="VLAs or VLM+VLA, with commas; see `merton model list`.")] = None,
    tasks: Annotated[str | None, typer.Option(help="With commas, such as test-pick,test-press.")] = None,
    distortions: Annotated[str | None, typer.Option(help="With commas; see `merton distort list`.")] = None,
    levels: Annotated[str | None, typer.Option(help="Such as 1,3,5, or one, or staircase.")] = None,
    scenes: Annotated[str | None, typer.Option(help="Scenes of each task.")] = None,
) -> None:
    """Write an experiment with every key and a comment, by questions on a terminal or by these options."""
    from merton.config import loads
    from merton.experiment.dry_run import extras_of, not_ready, outline
    from merton.experiment.plan import ExperimentSpec

    if out.exists():
        raise InputError(f"{out} exists: choose another name")
    given = {"agents": agents, "tasks": tasks, "distortions": distortions, "levels": levels, "scenes": scenes}
    chosen = {key: DEFAULTS[key] if value is None else value for key, value in given.items()}
    if all(value is None for value in given.values()) and _on_a_terminal():
        chosen = _asked(chosen)
    name = re.sub(r"[^a-z0-9_-]+", "-", out.stem.lower()).strip("-_") or "experiment"
    text = _text(name, chosen)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None
    spec = loads(text, ExperimentSpec, str(out))
    lines = outline(spec)
    for line in (lines[0], lines[-1], *not_ready(spec)):
        print_out(line)
    if sentence := lacking(str(out), *extras_of(spec)):
        print_out(f"not ready here: {sentence}")
    print_out(f"Written: {out}. Run it with: {own_command('run', str(out))}")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty()


def _asked(chosen: dict[str, str]) -> dict[str, str]:
    """The answers to all questions; one that no experiment may have is asked again."""
    for key, question in QUESTIONS.items():
        while True:
            answers = {**chosen, key: typer.prompt(question, default=chosen[key])}
            try:
                _text("new", answers)
            except InputError as error:
                print_err(str(error))
                continue
            chosen = answers
            break
    return chosen


def _text(name: str, chosen: dict[str, str]) -> str:
    from merton.experiment.template import experiment_text

    lists = {key: [word.strip() for word in chosen[key].split(",") if word.strip()] for key in chosen}
    levels: Any = chosen["levels"].strip()
    if levels not in ("one", "staircase"):
        levels = [_number(word) for word in lists["levels"]]
    return experiment_text(
        name, lists["agents"], lists["tasks"], lists["distortions"], levels, _number(chosen["scenes"])
    )


def _number(word: str) -> Any:
    """A whole number where the word is one; any other word as it is, for the experiment to refuse."""
    try:
        return int(word)
    except ValueError:
        return word
