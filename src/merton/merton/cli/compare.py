"""`merton compare`: two runs side by side, and whether they are identical."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from merton.cli.console import STDOUT, add_row, from_here, own_command, print_out, record_named, working
from merton.errors import InputError, MertonError
from merton.results.text import counted, one_line

if TYPE_CHECKING:
    from merton.results.recorded_world import RecordedWorld
    from merton.results.records import TrialRecord
    from merton.results.store import ResultStore
    from merton.study.changed_settings import Change, Settings
    from merton.study.compared import AgentPair, Comparison
    from merton.study.compared_page import Side
    from merton.study.same_scenes import Pictures

CHANGES_SHOWN, DIFFERENCES_SHOWN = 8, 12
"""Settings that differ, and fields of trials under --identical; the others are counted."""


class Source(NamedTuple):
    """One side as it is read: its name and state, its trials, and its settings.

    Attributes:
        notes: sentences about its state, such as that it is unfinished.
        pictures: of its scenes, where the record has them (`merton.study.same_scenes`).
        world: that its trials were made in; None if it is not known.
    """

    side: Side
    records: list[TrialRecord]
    settings: Settings
    blind: frozenset[str]
    is_staircase: bool
    notes: list[str]
    pictures: Pictures
    world: RecordedWorld | None


def source_named(name: str) -> str:
    """A run or a record that an argument names; raises InputError for a response matrix, and where there is none."""
    from merton.experiment.run_names import LATEST, find_run
    from merton.results.matrix import is_matrix_file

    if name != LATEST and is_matrix_file(name):
        raise InputError(
            f"{name} is a response matrix, which has no trials to compare: `merton leaderboard build {name}` shows its "
            "agents side by side"
        )
    return record_named(name) if "://" in name or Path(name).is_file() else str(find_run(name))


Compared = typer.Argument(callback=source_named, help="A run: its folder, its name or latest; or a record of trials.")


def compare_command(
    first: Annotated[str, Compared],
    second: Annotated[str, Compared],
    agents: Annotated[
        list[str] | None,
        typer.Option("--agents", help="a=b: agent a of the first with agent b of the second; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The page; compare-with-FIRST.html beside the second by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON, and write no page.")] = False,
    identical: Annotated[
        bool, typer.Option("--identical", help="Only test that all scores are equal: exit code 1 if they are not.")
    ] = False,
) -> None:
    """Compare two runs: what differs between FIRST (A) and SECOND (B), and is it more than chance?"""
    if identical:
        if agents or out or as_json:
            raise InputError("--identical takes no other option: leave out --agents, --out and --json")
        _test_identity(first, second)
        return
    if out and as_json:
        raise InputError("--json writes no page: leave out --out or --json")
    with working("loading"):
        from merton.results.recorded_world import version_sentences
        from merton.study import compared_page, compared_words
        from merton.study.changed_settings import changes
        from merton.study.compared import compared
        from merton.study.same_scenes import same_scenes

    named = [_pair(text) for text in agents or []]
    with working("comparing"):
        sources = _source(first), _source(second)
        sides = sources[0].side, sources[1].side
        is_staircase = any(source.is_staircase for source in sources)
        pictures = sources[0].pictures, sources[1].pictures
        worlds = sources[0].world, sources[1].world
        one, other, apart = same_scenes(sources[0].records, sources[1].records, pictures, worlds)
        comparison = compared(one, other, named, (sources[0].blind, sources[1].blind), is_staircase)
        changed = changes(sources[0].settings, sources[1].settings, [row.pair for row in comparison.agents])
    notes = [f"{letter} {note}" for letter, source in zip("AB", sources, strict=True) for note in source.notes]
    notes += [apart] if apart else []
    notes += version_sentences(*worlds)
    if is_staircase:
        notes.append(
            "levels: staircase drives every agent to the same success, so only undistorted trials are compared: "
            "compare the thresholds of the two reports"
        )
    if as_json:
        print_out(json.dumps(compared_page.as_json(comparison, changed, sides, notes), indent=1))
        return
    target = out or _beside(second, sides)
    page = compared_page.page(comparison, changed, sides, notes, target.parent)
    fault = _write_page(target, page)  # before the lines, which a pipe may cut off
    print_out(compared_words.finding(comparison))
    _print_comparison(comparison, changed, notes)
    if fault is not None:
        hint = "" if out else "; --out FILE writes the page elsewhere"
        raise type(fault)(f"{fault}{hint}")
    print_out(f"Page: {from_here(target)}")


def _print_comparison(comparison: Comparison, changed: list[Change], notes: list[str]) -> None:
    """The table, and the sentences under it."""
    from rich.table import Table

    from merton.study import compared_words as words
    from merton.study.compared import QUANTITIES

    table = Table("agent", "", "A", "B", "B - A, points [95 %]", "cases", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.no_wrap = True
    for row in comparison.agents:
        shown = [quantity for quantity in QUANTITIES if row.of(quantity)]
        for number, quantity in enumerate(shown):
            name = one_line(row.pair.name, 40) if number == 0 else ""
            add_row(table, name, words.quantity_words(quantity), *words.cells(row.of(quantity), quantity))
    STDOUT.print(table)
    for line in [*notes, *words.remarks(comparison)]:
        print_out(line)
    print_out(words.flips_line(comparison))
    if not changed:
        print_out("Settings that differ: none that is recorded.")
        return
    print_out("Settings that differ:")
    for change in changed[:CHANGES_SHOWN]:
        print_out(f"  {change.name}: {one_line(change.first, 60)} → {one_line(change.second, 60)}")
    if len(changed) > CHANGES_SHOWN:
        print_out(f"  and {len(changed) - CHANGES_SHOWN} more, on the page")


def _write_page(target: Path, page: str) -> MertonError | None:
    """Write the page; gives the fault if that is not possible."""
    from merton.files import make_folder, write_file

    try:
        make_folder(target.parent)
        write_file(target, page.encode())
    except MertonError as error:
        return error
    return None


def _source(name: str) -> Source:
    from merton.pages.words import date_and_time
    from merton.results.store import open_record
    from merton.results.trial_files import is_of_episodes, json_object
    from merton.study.blindness import blind_agents, declared_blind
    from merton.study.changed_settings import settings
    from merton.study.compared_page import Side
    from merton.study.episode_notes import episode_notes
    from merton.study.same_scenes import pictures_of
    from merton.study.thresholds import is_staircase

    run = _folder(name)
    with open_record(name, read_only=True) as store:
        records, place = store.records(), store.database.where
        found, pictures, world = settings(store, run), pictures_of(store.cases()), _world(store, run)
    if not records:
        raise InputError(f"{place} has no results")
    facts = (json_object(run / "run.json") if run else None) or {}
    about = [date_and_time(facts["created"])] if "created" in facts else []
    about.append(counted(len(records), "trial"))
    side = Side(run.resolve().name if run else Path(place).name, run, ", ".join(about))
    blind = blind_agents(records, declared_blind(facts))
    is_planned = run is not None and not is_of_episodes(facts)
    notes = _unfinished(run, records) if run and is_planned else [*episode_notes(facts, records)]
    return Source(side, records, found, blind, is_staircase(facts), notes, pictures, world)


def _world(store: ResultStore, run: Path | None) -> RecordedWorld | None:
    """The world of a run, or of all experiments of a record; None if it is not known, or of several."""
    from merton.results.recorded_world import place_of, world_of_experiment
    from merton.results.trial_files import json_object

    if run and (facts := json_object(run / "run.json")):
        return place_of(facts)
    worlds = {item.world: world_of_experiment(item) for item in store.experiment_records()}
    return next(iter(worlds.values())) if len(worlds) == 1 else None


def _folder(name: str) -> Path | None:
    """The folder of a run; None for a file, and for a record on a server."""
    return Path(name) if "://" not in name and Path(name).is_dir() else None


def _unfinished(run: Path, records: list[TrialRecord]) -> list[str]:
    """A sentence if a run has fewer trials than planned; none where its plan cannot be read."""
    from merton.experiment.run import RunDirectory

    try:
        planned = RunDirectory(run).planned(record.id for record in records)
    except InputError:  # its models are in no catalogue here
        return []
    if planned is None or len(records) >= planned:
        return []
    return [f"is unfinished: {len(records)} of {planned} trials so far, so the finding may still change."]


def _pair(text: str) -> AgentPair:
    """The agents of `a=b`, or of `a` in both runs; raises InputError for another text."""
    from merton.study.compared import AgentPair

    one, equals, other = text.partition("=")
    if not one or (equals and not other):
        raise InputError(f"--agents takes a=b, an agent of the first run and one of the second, got {text!r}")
    return AgentPair(one, other or one)


def _beside(second: str, sides: tuple[Side, Side]) -> Path:
    """The page in the folder of B, or beside its file; here for a record on a server."""
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in sides[0].name)[:100]
    file = f"compare-with-{name}.html"
    if "://" in second:
        return Path(file)
    return Path(second) / file if Path(second).is_dir() else Path(second).parent / file


def _test_identity(first: str, second: str) -> None:
    """Ends with exit code 1 and what differs, if anything but wall time does."""
    with working("loading"):
        from merton.leaderboard.snapshot import store as snapshot
        from merton.results import comparison
        from merton.results.recorded_world import worlds_sentence
        from merton.results.store import open_record

    found, places, worlds = [], [], []
    for name in (first, second):
        with open_record(name, read_only=True) as store:
            found.append(store.records())
            worlds.append(_world(store, _folder(name)))
            places.append(store.database.where)
        if not found[-1]:
            raise InputError(f"{places[-1]} has no results")
    one, other = found
    differences = comparison.compare(one, other)
    if apart := worlds_sentence(worlds[0], worlds[1]):
        differences.insert(0, apart)
    if not differences:
        with working("rating"):
            boards = [snapshot.of_trials(records) for records in found]
        if (boards[0].agents, boards[0].cases) != (boards[1].agents, boards[1].cases):
            differences.append("the ratings differ")
    if not differences:
        print_out(f"identical: {len(one)} trials, all scores and ratings")
        return
    for difference in differences[:DIFFERENCES_SHOWN]:
        print_out(difference)
    if len(differences) > DIFFERENCES_SHOWN:
        print_out(f"and {len(differences) - DIFFERENCES_SHOWN} more differences")
    hint = ""
    if not any("://" in name for name in (first, second)):  # an address may hold a password
        hint = f"; side by side: {own_command('compare', from_here(Path(first)), from_here(Path(second)))}"
    print_out(f"Not identical{hint}")
    raise typer.Exit(1)
