"""`merton attribute` of a run of episodes: the trials with distorted parts that another program has carried out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from merton import __version__
from merton.cli.attribution_shown import show
from merton.cli.console import print_out
from merton.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from merton.episodes.folder import EpisodesFolder

NO_PLACEBO = (
    "Chance: no placebo is recorded, so the share that a part without any effect would have is not known; intervals "
    "alone tell a share from 0."
)


def attribute_recorded(run: Path, agents: Sequence[str], axes: Sequence[str], options: Sequence[str]) -> None:
    """Share the losses of a run of episodes out; nothing is run, and only the attribution's files are written.

    Args:
        run: its folder.
        agents, axes: those of the command line; all if there are none.
        options: names of options that change what is run.

    Raises:
        InputError: such an option, an unknown agent or axis, or a design without parts, or nothing to share out yet.
    """
    from merton.episodes.design import AXES
    from merton.episodes.folder import EpisodesFolder
    from merton.study.attribution import Findings
    from merton.study.attribution_recorded import RecordedGame, findings_of

    if options:
        listed = ", ".join(f"--{option}" for option in options)
        raise InputError(f"{run} is a run of episodes, of which nothing is run here: leave {listed} out")
    for axis in axes:
        if axis not in AXES:
            raise UnknownNameError("axis of episodes", axis, AXES)
    folder = EpisodesFolder.read(run)
    records, parts = folder.records(), folder.part_records()
    known = sorted({record.agent for record in records})
    for agent in agents:
        if agent not in known:
            raise UnknownNameError("agent", agent, known)
    design = folder.design.dissection
    games = [
        RecordedGame(game.axis, list(game.parts), game.designs)
        for game in design.games
        if not axes or game.axis in axes
    ]
    if not games:
        asked = " or ".join(axes) or "cameras or steps"
        raise InputError(
            f"the design of {run} has no conditions by {asked}: a design with `attribute: [cameras, steps]` has them"
        )
    found = Findings((), (), ())
    for agent in agents or known:
        found += findings_of(agent, games, design.prefixes, records, parts)
    progress = _progress(folder, len(parts))
    if not found.attributions:
        raise InputError(f"{run}: {' '.join((*found.remarks, progress))}")
    about = {"design_sha256": folder.about.get("design_sha256"), "seed": folder.design.seed, "merton": __version__}
    show(run, found + Findings((), (), (NO_PLACEBO,)), about)
    if progress:
        print_out(progress)


def _progress(folder: EpisodesFolder, recorded: int) -> str:
    """The sentence on the episodes of the parts that are still to come; empty if there are none."""
    from merton.experiment.subsets import WHOLE

    scenes = {(past.agent, past.case.task, past.case.seed) for past in folder.episodes}
    planned = sum(condition.part != WHOLE for _, task, scene in scenes for condition in folder.conditions(task, scene))
    if recorded >= planned:
        return ""
    return (
        f"{recorded} of {planned} episodes of the parts are recorded: let the harness go on, then repeat this command."
    )
