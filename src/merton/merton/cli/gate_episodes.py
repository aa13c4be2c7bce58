"""`merton gate --resume` of a run of episodes: the verdict on what another program has carried out so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from merton.cli.console import print_err, print_out
from merton.errors import InputError
from merton.results.text import counted

if TYPE_CHECKING:
    from merton.statistics.sequential import Conclusion
    from merton.study.gate import Judgement
    from merton.study.gate_episodes import RecordedScenes


def episodes_named(name: str | None, runs: Path) -> Path | None:
    """The run of episodes that a name of a run means; None for another run, or none."""
    from merton.experiment.run_names import is_episodes

    return next((folder for folder in (runs / name, Path(name)) if is_episodes(folder)), None) if name else None


def gate_recorded(run: Path, candidate: str, baseline: str, delta: float, scenes: int | None) -> Conclusion:
    """Judge two agents by the recorded scenes of a run of episodes, and print the result; gives the verdict.

    Args:
        run: its folder; nothing is run, and only the gate's own files are written into it.
        candidate, baseline: ids of its agents.
        delta: the largest loss of success that is accepted, 0..1.
        scenes: at most so many, the first ones.

    Raises:
        InputError: no such agent, or no scene that both have done.
    """
    from merton.statistics.sequential import Conclusion
    from merton.study import gate_files
    from merton.study.gate import judge_scenes
    from merton.study.gate_episodes import until_sure
    from merton.study.values import VALUES

    found = _scenes(run, candidate, baseline)
    if not found.done:
        raise InputError(
            f"{run} has no scene that {candidate} and {baseline} have both done in all conditions of the design "
            f"({found.begun} begun, {found.apart} with different first pictures): let the harness go on"
        )
    value = VALUES["success"]
    known = found.done[:scenes]
    used = until_sure(known, value, delta)
    tasks = sorted({scene[0][0].case.task for scene in found.done})
    judgement = judge_scenes(known[:used], "success", value, delta, tasks)
    gate_files.write(run, judgement, candidate, baseline)
    further = len(known) - used
    for line in (*gate_files.summary(judgement, candidate, baseline), *_remarks(found, further)):
        print_out(line)
    beside = ", ".join((gate_files.MARKDOWN, gate_files.JUNIT, *gate_files.PICTURES))
    print_out(f"Page: {run / gate_files.PAGE}. Beside it: {beside}")
    if judgement.whole.verdict is Conclusion.UNRESOLVED:
        print_out(_needed(judgement))
    return judgement.whole.verdict


def _scenes(run: Path, candidate: str, baseline: str) -> RecordedScenes:
    from merton.episodes.folder import EpisodesFolder
    from merton.episodes.pairs import different_scenes
    from merton.experiment.subsets import WHOLE
    from merton.results.trial_files import trial_detail
    from merton.study.gate_episodes import recorded_scenes

    folder = EpisodesFolder.read(run)
    records = folder.records()
    numbers = {record.id: (trial_detail(run, record) or {}).get("episode") for record in records}
    order = {id: number for id, number in numbers.items() if isinstance(number, int)}
    scenes = {(record.case.task, record.case.seed) for record in records}
    whole = {scene: sum(condition.part == WHOLE for condition in folder.conditions(*scene)) for scene in scenes}
    print_err(f"{candidate} against {baseline}, by the episodes that are recorded: {run}")
    return recorded_scenes(records, candidate, baseline, order, whole, set(different_scenes(folder.episodes)))


def _remarks(found: RecordedScenes, further: int) -> list[str]:
    lines = []
    if further:
        lines.append(f"{counted(further, 'further scene')} of the run {'is' if further == 1 else 'are'} not needed.")
    if found.begun:
        lines.append(f"{counted(found.begun, 'scene')} not done by both agents yet and left out.")
    if found.apart:
        lines.append(
            f"{counted(found.apart, 'scene')} left out: the agents did not begin with the same first picture there."
        )
    return lines


def _needed(judgement: Judgement) -> str:
    """The sentence on the number of scenes that would resolve the difference that was found."""
    from merton.study.gate import FORESEEN, scenes_for

    enough, known = scenes_for(judgement), len(judgement.scenes)
    if enough is None:
        return f"Even {FORESEEN} times as many scenes like these {known} would not resolve it."
    return (
        f"If the difference stays as it is, let the harness run about {counted(enough - known, 'more scene')}, then "
        "repeat this command."
    )
