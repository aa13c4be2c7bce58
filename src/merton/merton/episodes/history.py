"""The episodes of a run as its journal tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from merton.episodes.design import Condition
from merton.episodes.journal import Line
from merton.episodes.names import safe_part
from merton.errors import ErrorCode
from merton.experiment.subsets import WHOLE
from merton.results.records import NO_PAIR, Outcome, Reference, TestCase, TrialRecord

WITHOUT_END = "the episode ended without a result"
"""Why an episode without an end is a failure, if nothing else is said."""


@dataclass
class Past:
    """An episode that was begun.

    Attributes:
        number: from 0, in the order of the beginnings.
        begin, end, lost: its lines in the journal; None if they are not there.
        result: its success that was told later; None if it was not.
        condition, case: what it was shown, and its test case.
    """

    number: int
    begin: Line
    end: Line | None = None
    lost: Line | None = None
    result: bool | None = None
    condition: Condition = field(init=False)
    case: TestCase = field(init=False)

    def __post_init__(self) -> None:
        self.condition = Condition(self.begin["distortion"], self.begin["level"], self.begin.get("part", WHOLE))
        self.case = self.condition.case(self.begin["task"], self.begin["scene"])

    @property
    def agent(self) -> str:
        return str(self.begin["agent"])

    @property
    def id(self) -> str:
        """The id of its trial, such as "pi0.push-v3.0.gaussian_blur.3"; those of the parts' designs have it, too."""
        return f"{self.agent}.{self.case.id}"

    @property
    def key(self) -> tuple[str, str, int, Condition]:
        """Agent, task, scene and condition: one recorded episode of each counts."""
        return self.agent, self.case.task, self.case.seed, self.condition

    @property
    def is_recorded(self) -> bool:
        """Whether it is one of the design, and not lost: its trial is in the record once it has ended."""
        return bool(self.begin.get("recorded", True)) and self.lost is None

    @property
    def success(self) -> bool | None:
        """As the program said at the end or later; None without an end or a result."""
        if self.end is None:
            return None
        told = self.end.get("success")
        return self.result if told is None else bool(told)

    @property
    def has_no_result(self) -> bool:
        """Whether it ended and no success was told: it counts as a failure."""
        return self.end is not None and self.success is None

    @property
    def first_sha256(self) -> str:
        """SHA-256 of its first undistorted pictures; empty if none was seen."""
        return str((self.end or {}).get("first_sha256", ""))

    @property
    def undistorted(self) -> str:
        """Why it is no trial of its distortion (`Episode.undistorted`); empty if it is one."""
        return str((self.end or {}).get("undistorted", ""))

    @property
    def folder(self) -> str:
        """Of its files, in the run's folder."""
        part = self.condition.part
        return f"trials/{self.id}" if part == WHOLE else f"parts/{safe_part(part)}/{self.id}"

    def record(self, run: str, decision: float | None = None, broken: str = "") -> TrialRecord:
        """Its trial, once it has ended; in an experiment called as its part's design, or as the run.

        Args:
            decision: the score of step 0's answers.
            broken: why it is no pair with its undistorted episode (`pairs.Broken.why`): every reader of the record
                leaves it out then, as a trial that says nothing about the agent. trial.json keeps its success.
        """
        end = self.end or {}
        told = [str(text) for text in end.get("notes", ())]
        why = str(end.get("why", ""))
        if self.has_no_result:
            told.insert(0, why or WITHOUT_END)
        elif why and self.result is None:  # one that was told later answers it
            told.insert(0, why)
        if broken:
            return TrialRecord(
                run if self.condition.part == WHOLE else self.condition.part,
                self.agent,
                self.case,
                Outcome.INFRASTRUCTURE,
                steps=int(end.get("steps", 0)),
                wall_s=float(end.get("wall_s", 0.0)),
                error_code=int(ErrorCode.NOT_PAIRED),
                error_message=f"{NO_PAIR}{broken}",
            )
        return TrialRecord(
            experiment=run if self.condition.part == WHOLE else self.condition.part,
            agent=self.agent,
            case=self.case,
            outcome=Outcome.SUCCESS if self.success else Outcome.FAILURE,
            decision=decision,
            progress=1.0 if self.success else None,
            reference=Reference.NONE,
            steps=int(end.get("steps", 0)),
            wall_s=float(end.get("wall_s", 0.0)),
            error_code=int(ErrorCode.NO_END if self.has_no_result else ErrorCode.OK),
            error_message="; ".join(told),
        )


@dataclass(frozen=True)
class Successes:
    """How often an agent succeeded in a task under a condition, as the program said: pairs play no part in it.

    Attributes:
        agent, task: as in test cases.
        condition: in words, such as "jpeg 5".
        episodes, successes: recorded ones; an episode without a result is no success.
    """

    agent: str
    task: str
    condition: str
    episodes: int
    successes: int


@dataclass(frozen=True)
class Counts:
    """How many episodes there were, by what became of them.

    Attributes:
        begun: all.
        recorded: have ended, one for each agent, scene and condition.
        without_end: of those, ended without a result: failures.
        lost: to a fault of the infrastructure; their conditions are given again.
        open: begun and not over.
        beyond: after all conditions of their scene were given, or a second time in one that was asked for; passed on,
            and in no record.
    """

    begun: int = 0
    recorded: int = 0
    without_end: int = 0
    lost: int = 0
    open: int = 0
    beyond: int = 0


def history(lines: Iterable[Line]) -> list[Past]:
    """All episodes that were begun, in their order."""
    found: dict[int, Past] = {}
    for line in lines:
        event, number = line.get("event"), line.get("episode")
        if not isinstance(number, int):
            continue
        if event == "begin":
            found[number] = Past(number, line)
        elif (past := found.get(number)) is None:
            continue
        elif event == "end":
            past.end = line
        elif event == "lost":
            past.lost = line
        elif event == "result":
            past.result = bool(line.get("success"))
    return [found[number] for number in sorted(found)]


def recorded(episodes: Iterable[Past]) -> list[Past]:
    """Those that have ended and count, one for each agent, scene and condition."""
    return [past for past in episodes if past.is_recorded and past.end is not None]


def counts(episodes: Iterable[Past]) -> Counts:
    """How many there are of each kind."""
    known = list(episodes)
    of_design = [past for past in known if past.begin.get("recorded", True)]
    kept = recorded(known)
    return Counts(
        begun=len(known),
        recorded=len(kept),
        without_end=sum(past.has_no_result for past in kept),
        lost=sum(past.lost is not None for past in of_design),
        open=sum(past.end is None and past.lost is None for past in known),
        beyond=len(known) - len(of_design),
    )


def successes(episodes: Iterable[Past]) -> list[Successes]:
    """Those of every agent, task and condition, in order."""
    found: dict[tuple[str, str, Condition], list[bool]] = {}
    for past in recorded(episodes):
        found.setdefault((past.agent, past.case.task, past.condition), []).append(bool(past.success))
    return [
        Successes(agent, task, str(condition), len(values), sum(values))
        for (agent, task, condition), values in sorted(found.items())
    ]


def latency(episodes: Iterable[Past]) -> dict[str, Any]:
    """Time that was added to observations: {"p50_ms", "p99_ms", "n"}; empty if none was measured."""
    import numpy as np

    added = [value for past in episodes for value in (past.end or {}).get("added_ms", ())]
    if not added:
        return {}
    p50, p99 = np.quantile(np.array(added, np.float64), (0.5, 0.99)).tolist()
    return {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3), "n": len(added)}
