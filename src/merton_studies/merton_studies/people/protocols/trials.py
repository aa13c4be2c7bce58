"""Whether a robot did its task, judged by people from the pictures of a trial, after the fact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.results.csv_writer import write_csv
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

VERDICTS = {"success": "Success", "failure": "Failure", "unclear": "Cannot tell"}
"""Verdicts as of the lab's judge: name to the word of the page."""


class TrialVerdict(Model):
    """A verdict: success, failure, or unclear from the pictures."""

    verdict: Literal["success", "failure", "unclear"]


class Trials(Protocol):
    """One trial at a time, with its instruction and without its agent, distortion or recorded outcome.

    Items have one medium, "video", and the facts `run`, `trial`, `agent` and `recorded`: the outcome in the record, or
    empty where the judge could not tell.
    """

    name: ClassVar[str] = "trials"
    title: ClassVar[str] = "Success of trials"
    roles: ClassVar[tuple[str, ...]] = ("video",)
    criteria: ClassVar[Mapping[str, Scale]] = {"success": "nominal"}

    @property
    def answer(self) -> type[Model]:
        return TrialVerdict

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`instruction`, `question`, and `verdicts`: name and word of each. With `blind` false also `agent`."""
        view: dict[str, Any] = {
            "instruction": item.texts.get("instruction", ""),
            "question": "Was the task done at the end?",
            "verdicts": [[name, word] for name, word in VERDICTS.items()],
        }
        return view if blind else {**view, "agent": item.facts["agent"]}

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        """Criterion to verdict; empty where the rater could not tell."""
        return {} if answer["verdict"] == "unclear" else {"success": str(answer["verdict"])}

    def is_right(self, item: Item, answer: Mapping[str, Any]) -> bool:
        """Whether the verdict is the known one; "cannot tell" is wrong where success is known."""
        assert item.gold is not None
        return bool(answer["verdict"] == item.gold["verdict"])

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`verdicts.csv`: each trial with its votes and the verdict of most; `votes.csv`: the verdict of each rater.

        `merton people judge` puts the verdicts into a record.
        """
        by_id = {item.id: item for item in items}
        votes = first_answers(answers)
        rows = [
            (*_trial(by_id[name]), found["verdict"], *(found[verdict] for verdict in VERDICTS))
            for name, found in verdicts(votes).items()
        ]
        single = [
            (*_trial(by_id[answer.item])[:2], names.get(answer.rater, answer.rater), answer.answer["verdict"])
            for answer in votes
        ]
        header = ("run", "trial", "agent", "scene", "recorded", "verdict", *VERDICTS)
        return [
            write_csv(out / "verdicts.csv", header, sorted(rows)),
            write_csv(out / "votes.csv", ("run", "trial", "rater", "verdict"), sorted(single)),
        ]


def verdicts(votes: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    """Id of each item that was judged to the number of each of `VERDICTS`, and `verdict`: that of most.

    "unclear" unless more say success than failure or more failure than success (raters who could not tell do not vote),
    and unless at least half of all raters could tell. Ours: a lab's single judge has no majority to ask for.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for vote in votes:
        counts[vote.item][vote.answer["verdict"]] += 1
    return {item: {**{name: own[name] for name in VERDICTS}, "verdict": _most(own)} for item, own in counts.items()}


def _most(votes: Mapping[str, int]) -> str:
    success, failure = votes.get("success", 0), votes.get("failure", 0)
    if success == failure or success + failure < votes.get("unclear", 0):
        return "unclear"
    return "success" if success > failure else "failure"


def _trial(item: Item) -> tuple[str, str, str, str, str]:
    facts = item.facts
    return facts["run"], facts["trial"], facts["agent"], item.scene, facts.get("recorded", "")
