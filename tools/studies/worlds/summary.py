"""The tables of docs/reference/other_worlds.md: summary.py RUN ..; one table of drops and one of types for each run.

The last lines are what one rollout of each distorted condition says without a pair, and whether the pairs are pairs:
whether all trials of a scene began with the same undistorted pictures.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from scipy.stats import binomtest

import merton
from merton.files import file_sha256
from merton.results import losses
from merton.results.losses import Loss
from merton.results.records import TrialRecord
from merton.statistics.means import mean


def of_agents(records: Iterable[TrialRecord]) -> list[str]:
    """Rows of a table: the drop of each agent, and the mean decision score of its distorted trials."""
    known = list(records)
    rows = []
    for agent, loss in sorted(losses.by_agent(known).items()):
        decided = [each.decision for each in known if each.agent == agent and not each.case.is_reference]
        decision = mean([score for score in decided if score is not None])
        rows.append(f"| `{agent}` | {_fall(loss)} | {_points(loss)} | {loss.scenes} | {decision or 0:.3f} |")
    return rows


def of_types(records: Iterable[TrialRecord]) -> list[str]:
    """Rows of a table: each type of distortion with every agent's drop, the largest mean drop first."""
    by_type = losses.grouped(losses.successes(records), lambda case: case.distortion)
    worst = sorted(by_type.items(), key=lambda item: (-sum(loss.points for loss in item[1].values()), item[0]))
    return [
        f"| `{name}` | {' | '.join(f'{_fall(loss)}, {_points(loss)}' for _, loss in sorted(found.items()))} |"
        for name, found in worst
    ]


def unpaired(records: Iterable[TrialRecord]) -> list[str]:
    """One success rate over all distorted trials of each agent, with the exact interval of independent rollouts."""
    tried: Mapping[str, list[bool]] = defaultdict(list)
    for record in records:
        if not record.case.is_reference and record.success is not None:
            tried[record.agent].append(bool(record.success))
    lines = []
    for agent, successes in sorted(tried.items()):
        done, count = sum(successes), len(successes)
        low, high = binomtest(done, count).proportion_ci(0.95, "exact")
        lines.append(f"{agent}: {100 * done / count:.0f} % of {count} [{100 * low:.0f}, {100 * high:.0f}]")
    return lines


def pairs(folder: Path) -> str:
    """Whether the undistorted pictures of step 0 are the same files in all trials of each scene."""
    found: Mapping[str, set[str]] = defaultdict(set)
    trials: Mapping[str, set[str]] = defaultdict(set)
    for picture in folder.glob("trials/*/00_*_reference.jpg"):
        task, scene = picture.parent.name.split(".")[1:3]
        found[f"{task}.{scene}.{picture.name}"].add(file_sha256(picture))
        trials[f"{task}.{scene}"].add(picture.parent.name)
    alike = sum(len(hashes) == 1 for hashes in found.values())
    count = sum(len(names) for names in trials.values())
    return (
        f"{count} trials of {len(trials)} scenes: {alike} of {len(found)} first undistorted pictures are one file each"
    )


def _fall(loss: Loss) -> str:
    return f"{100 * loss.before:.0f} -> {100 * loss.after:.0f} %"


def _points(loss: Loss) -> str:
    low, high = loss.interval
    return f"{100 * loss.points:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def main() -> None:
    """Print the tables of every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    for run in parser.parse_args().runs:
        records = merton.load(run).records
        print(run, *of_agents(records), "", *of_types(records), "", *unpaired(records), pairs(run), "", sep="\n")


if __name__ == "__main__":
    main()
