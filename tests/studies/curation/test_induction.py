"""The loop that finds dimensions, with agents that answer from a script: how it ends, and resumes after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.errors import InputError
from merton_studies.curation.agents import Balance, Critique, Memory
from merton_studies.curation.induction import Induction, Iterations, induce, read_memory
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy

POOL = Pool.of(
    [Question(id="one", source="made", text="Where is the cup?", answer_kind="free_text")],
    [BenchmarkSource(name="made")],
)


def taxonomy(names: str) -> Taxonomy:
    """A dimension for each letter; a capital one is defined in other words."""
    return Taxonomy(name=names, dimensions=tuple(Dimension(name=n.lower(), definition=n) for n in names))


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """A direction for each letter; that of a capital one has a cosine of .96 with that of the small one."""
    vectors = np.zeros((len(texts), 256), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        row[ord(text.lower())], row[ord(text)] = (0.96, 0.28) if text.isupper() else (1, 1)
    return vectors


class Killed(BaseException):
    """Stands for kill -9."""


class Agents:
    """Proposer, Reviewer and trial in one; each proposal is the next of the script, the last for ever."""

    name = "scripted"

    def __init__(self, script: str, kill_at: int = 0) -> None:
        self.script, self.kill_at = script.split(), kill_at
        self.calls: list[str] = []

    def _called(self, what: str) -> None:
        if len(self.calls) + 1 == self.kill_at:
            raise Killed
        self.calls.append(what)

    def propose(self, pool: Pool, critique: Critique | None, memory: Memory) -> Taxonomy:
        self._called(f"propose {critique.summary if critique else ''}".strip())
        proposed = sum(entry.balance is None for entry in memory)
        return taxonomy(self.script[min(proposed, len(self.script) - 1)])

    def review(self, shown: Taxonomy, pool: Pool, memory: Memory, balance: Balance | None) -> Critique:
        self._called(f"review {shown.name}{' balance' if balance else ''}")
        assert memory[-1].taxonomy == shown
        return Critique(summary=f"of {shown.name}")

    def try_out(self, shown: Taxonomy) -> Balance:
        self._called(f"try {shown.name}")
        return Balance(assigned={OTHER: 1}, kept={}, contested=0, entropy=0.5)

    def induce(self, file: Path, budget: Iterations | None = None) -> Induction:
        return induce(POOL, self, self, self.try_out, budget or Iterations(), file, embed)


def test_the_loop_is_that_of_the_paper(tmp_path: Path) -> None:
    agents = Agents("ab abc abc abd abd")
    found = agents.induce(tmp_path / "memory")
    assert agents.calls == [
        "propose",
        "review ab",
        "propose of ab",
        "review abc",
        "propose of abc",
        "try abc",
        "review abc balance",
        "propose of abc",
        "review abd",
        "propose of abd",
        "try abd",
        "review abd balance",
        "propose of abd",
    ]
    assert (found.ended, found.taxonomy.name) == ("stable", "abd")
    assert found.reason == "the dimensions are stable after 6 proposals and 2 trials"
    told = [(entry.outer, entry.inner, entry.taxonomy.name, entry.balance is not None) for entry in found.rounds]
    assert told[:4] == [(1, 1, "ab", False), (1, 2, "abc", False), (1, 3, "abc", False), (1, 4, "abc", True)]
    assert read_memory(tmp_path / "memory") == found.rounds


def test_other_words_and_another_order_are_the_same_set(tmp_path: Path) -> None:
    agents = Agents("ab BA")
    assert agents.induce(tmp_path / "memory").ended == "stable"
    assert agents.calls.count("try BA") == 1


def test_dimensions_with_other_definitions_are_another_set(tmp_path: Path) -> None:
    def unlike(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(len(texts), dtype=np.float32)

    agents = Agents("a A a A a A")
    found = induce(POOL, agents, agents, agents.try_out, Iterations(), tmp_path / "memory", unlike)
    assert found.ended == "oscillating"


@pytest.mark.parametrize(
    ("script", "ended", "name", "reason"),
    [
        ("ab cd ab", "oscillating", "ab", "a set of 2 dimensions came again after 1 other set"),
        ("ab ab cd ef ab", "oscillating", "ab", "after 2 other sets"),
        (
            "a b c d e f g h i j k",
            "budget",
            "f",
            "changed after 2 trials and 6 proposals; the budget is 2 trials",
        ),
    ],
)
def test_circles_and_the_budget_end_it(tmp_path: Path, script: str, ended: str, name: str, reason: str) -> None:
    found = Agents(script).induce(tmp_path / "memory", Iterations(inner=3, outer=2))
    assert (found.ended, found.taxonomy.name) == (ended, name)
    assert reason in found.reason


def test_an_induction_that_was_killed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    script = "ab abc abc abd abd"
    whole = Agents(script)
    expected = whole.induce(tmp_path / "whole")
    for kill_at in range(1, len(whole.calls) + 1):
        file = tmp_path / f"killed {kill_at}"
        killed, after = Agents(script, kill_at), Agents(script)
        with pytest.raises(Killed):
            killed.induce(file)
        if kill_at % 2:  # killed while it wrote the next line
            with file.open("ab") as half:
                half.write(b'{"outer":1,"inn')
        assert after.induce(file) == expected
        assert killed.calls + after.calls == whole.calls
        assert file.read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_memory_of_another_induction_is_refused(tmp_path: Path) -> None:
    Agents("ab ab").induce(tmp_path / "memory")
    with pytest.raises(InputError, match=r"line 2, is round 1\.1, not 1\.2.*another folder"):
        Agents("ab ab").induce(tmp_path / "memory", Iterations(inner=1))
    (tmp_path / "memory").write_bytes(b"{}\n")
    with pytest.raises(InputError, match="line 1"):
        Agents("ab").induce(tmp_path / "memory")
