"""The inputs of a snapshot, their matches and their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from merton.rating.checking import MatchTable, table_of
from merton.results.losses import Success
from merton.results.metrics import DEFAULT_METRIC, match_scores
from merton.results.records import AgentRecord, ExperimentRecord, ForeignScore, TrialRecord
from merton.results.text import printable

_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False, default=attrgetter("facts"))
"""One for all lines: making one takes longer than a line. `default` turns a trial's case into its fields."""


MOST = 3
"""Imported sources that are named where the rated scores are told."""


@dataclass(frozen=True)
class Inputs:
    """Everything a snapshot is computed from, in any order.

    Attributes:
        trials: of all experiments; one without a score by the metric is listed and never rated.
        scores: of imported matrices, 0..1.
        agents: those registered in the record.
        submitted: scores of submissions on the board, on cases of trials or imports; `source` is the submission's id.
        submitted_successes: the same of success, for the drop of a submission that states it; those of trials.
        left_out: agents of submissions in the window that state nothing by the metric.
        window: day that began the window of these submissions, ISO 8601; empty if the record has none.
        metric: of `merton.results.metrics`, by which trials are rated; imports and submissions have one score each.
        imported_by: source of an imported matrix to the metric that its values were mapped to scores by, such as
            "acc_at_1"; one whose values were scores is absent.
        experiments: those of the record, if any names its world.
    """

    trials: Sequence[TrialRecord]
    scores: Sequence[ForeignScore] = ()
    agents: Sequence[AgentRecord] = ()
    submitted: Sequence[ForeignScore] = ()
    window: str = ""
    metric: str = DEFAULT_METRIC
    submitted_successes: Sequence[ForeignScore] = ()
    left_out: Sequence[str] = ()
    imported_by: Mapping[str, str] = field(default_factory=dict)
    experiments: Sequence[ExperimentRecord] = ()

    @property
    def rated_by(self) -> str:
        """The scores that are rated, in words: "success of trials", "acc_at_1", "acc_at_1 of imagenet, scores of x"."""
        sources = sorted({item.source for item in self.scores})
        if len(sources) == 1 and not self.trials:
            return self.imported_by.get(sources[0], "imported scores")
        imported = [f"{self.imported_by.get(source, 'scores')} of {printable(source, 40)}" for source in sources[:MOST]]
        imported += [f"scores of {len(sources) - MOST} more sources"] if len(sources) > MOST else []
        own = [f"{self.metric} of trials"] if self.trials or not sources else []
        return ", ".join(own + imported)

    def matches(self) -> MatchTable:
        """The matches of trials, imports and submissions; raises as `match_scores`, and for a score outside 0..1."""
        own = match_scores(self.trials, self.metric)
        foreign = (*self.scores, *self.submitted)
        return table_of(
            [*(agent for agent, _, _ in own), *(item.agent for item in foreign)],
            [*(case for _, case, _ in own), *(item.case for item in foreign)],
            [*(score for _, _, score in own), *(item.score for item in foreign)],
            {trial.case.id: trial.case.scene for trial in self.trials},
        )

    def stated_successes(self) -> list[Success]:
        """The successes of submissions on the test cases of trials; the order of trials plays no part."""
        case_of = {trial.case.id: trial.case for trial in self.trials}
        return [(item.agent, case_of[item.case], item.score) for item in self.submitted_successes]

    def sha256(self) -> str:
        """SHA-256 over everything that counts, one canonical JSON line an item, sorted; wall times are left out.

        The kind and then the agent stand first in a line of a trial or score, so those of one agent are sorted apart.
        """
        digest = hashlib.sha256()
        _digest("agent", self.agents, digest)
        stated = () if self.metric == DEFAULT_METRIC else self.submitted_successes  # else they are `submitted`
        parts = (("score", self.scores), ("submitted", self.submitted), ("success", stated), ("trial", self.trials))
        for kind, items in parts:
            by_agent: dict[str, list[Any]] = {}
            for item in items:
                by_agent.setdefault(item.agent, []).append(item)
            for agent in sorted(by_agent, key=json.dumps):
                _digest(kind, by_agent[agent], digest)
        if self.left_out:
            digest.update(f"{_ENCODER.encode(['left out', *sorted(self.left_out)])}\n".encode())
        for one in sorted(self.experiments):
            digest.update(f"{_ENCODER.encode(['world', one.id, one.world, one.world_versions])}\n".encode())
        return digest.hexdigest()


def _digest(kind: str, items: Iterable[Any], digest: hashlib._Hash) -> None:
    """Add the lines of items, sorted."""
    for line in sorted(_lines(kind, items)):
        digest.update(line.encode() + b"\n")


def _lines(kind: str, items: Iterable[Any]) -> Iterable[str]:
    for item in items:
        values = dict(vars(item))
        values.pop("wall_s", None)
        yield _ENCODER.encode([kind, values])
