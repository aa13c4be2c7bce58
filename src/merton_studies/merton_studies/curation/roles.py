"""The roles of a curation as its options choose them: LLMs find dimensions; LLMs or computed voters assign."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from merton.cognition.models.base import MODELS
from merton.config import Model
from merton.errors import InputError
from merton_studies.annotate.cache import Cache
from merton_studies.curation.agents import Proposer, Reviewer, Voter
from merton_studies.curation.assignment import VOTERS
from merton_studies.curation.budget import CALLS, Budget
from merton_studies.curation.llm.agents import LlmProposer, LlmReviewer, LlmVoter
from merton_studies.curation.llm.asker import RETRY, TEMPERATURE, Asker, chat_model
from merton_studies.curation.llm.prompting import read_prompt
from merton_studies.curation.pool import Pool

PROMPTS = ("propose", "review", "assign", RETRY)


class Chosen(Model):
    """The options.

    Attributes:
        proposer, reviewer: names of models; None where the dimensions are given.
        assigners: models that vote, by turns; without any the computed voters do.
        voters: number of voters with `assigners`; None for the paper's five.
        pictures: shown to such a voter with each question; 0 for its text alone.
        max_calls, max_cost: see `Budget`.
    """

    proposer: str | None = None
    reviewer: str | None = None
    assigners: tuple[str, ...] = ()
    voters: Annotated[int, Field(ge=1)] | None = None
    pictures: Annotated[int, Field(ge=0)] = 0
    max_calls: int | None = None
    max_cost: float | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that is named, once each."""
        named = (self.proposer, self.reviewer, *self.assigners)
        return tuple(dict.fromkeys(name for name in named if name))


@dataclass(frozen=True)
class Roles:
    """The three roles.

    Attributes:
        proposer, reviewer: see `merton_studies.curation.agents`; None where no model is named.
        voters: see there, too.
        budget: of calls of models; None where there is no LLM.
        about: identity of the models and versions of the prompts; JSON values.
    """

    proposer: Proposer | None
    reviewer: Reviewer | None
    voters: tuple[Voter, ...]
    budget: Budget | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def finders(self) -> tuple[Proposer, Reviewer]:
        """Proposer and reviewer, where dimensions are to be found."""
        assert self.proposer is not None
        assert self.reviewer is not None
        return self.proposer, self.reviewer


@contextmanager
def roles(
    chosen: Chosen, computed: Callable[[], tuple[Voter, ...]], pool: Pool, out: Path, cache: Path, seed: int = 0
) -> Iterator[Roles]:
    """The roles, as a context that closes the cache.

    Args:
        computed: makes the voters without an LLM; called only if no assigner is named.
        pool: of the questions.
        out: folder of the curation, which exists; with an LLM, the file calls.jsonl there counts its calls.
        cache: file of all answers of models, the same as of `merton annotate`.
        seed: of examples, calls and voters.

    Raises:
        InputError: an option without the one that it belongs to, or see `Asker` and `Budget`.
        UnknownNameError: a model that is not in the catalogue.
        InfrastructureError: the cache or calls.jsonl cannot be read.
    """
    check(chosen)
    if not chosen.models:
        voters = computed()
        yield Roles(None, None, voters, about={"voters": [voter.name for voter in voters]})
        return
    budget = Budget(chosen.max_calls, chosen.max_cost, out / CALLS)
    with Cache(cache) as answers:
        askers = _Askers(answers, budget)
        proposer = LlmProposer(askers.of(chosen.proposer), seed) if chosen.proposer else None
        reviewer = LlmReviewer(askers.of(chosen.reviewer), seed) if chosen.reviewer else None
        voters = _voters(chosen, askers, pool, seed) if chosen.assigners else computed()
        about = {
            "proposer": chosen.proposer,
            "reviewer": chosen.reviewer,
            "voters": [voter.name for voter in voters],
            "pictures": chosen.pictures,
            "models": askers.about,
            "prompts": {name: read_prompt(name).version for name in PROMPTS},
        }
        yield Roles(proposer, reviewer, voters, budget, about)


def check(chosen: Chosen) -> None:
    """Raise as `roles` for options that do not go together and models that cannot be asked; none is asked."""
    _refuse_idle(chosen)
    if _voter_count(chosen) < len(chosen.assigners):
        raise InputError(
            f"{len(chosen.assigners)} models vote, so --voters must be at least that, got {_voter_count(chosen)}"
        )
    for name in chosen.models:
        chat_model(MODELS[name])


def _voter_count(chosen: Chosen) -> int:
    return VOTERS if chosen.voters is None else chosen.voters


class _Askers:
    """One `Asker` for each model and temperature."""

    def __init__(self, cache: Cache, budget: Budget) -> None:
        self._cache, self._budget = cache, budget
        self._made: dict[tuple[str, float], Asker] = {}

    def of(self, model: str, temperature: float = 0.0) -> Asker:
        if (model, temperature) not in self._made:
            self._made[model, temperature] = Asker(model, self._cache, self._budget, temperature)
        return self._made[model, temperature]

    @property
    def about(self) -> list[dict[str, Any]]:
        return [{"name": name, **asker.about} for (name, _), asker in self._made.items()]


def _voters(chosen: Chosen, askers: _Askers, pool: Pool, seed: int) -> tuple[Voter, ...]:
    """The models vote by turns; one is greedy where it is the only voter of its model."""
    count = _voter_count(chosen)
    turns = [chosen.assigners[place % len(chosen.assigners)] for place in range(count)]
    return tuple(
        LlmVoter(
            askers.of(name, TEMPERATURE if turns.count(name) > 1 else 0.0),
            seed * count + place,  # no two curations share a voter
            pool,
            chosen.pictures,
        )
        for place, name in enumerate(turns)
    )


def _refuse_idle(chosen: Chosen) -> None:
    """Raise InputError for an option that would do nothing."""
    if not chosen.assigners and (chosen.voters is not None or chosen.pictures):
        option = "--pictures" if chosen.voters is None else "--voters"
        raise InputError(f"{option} is of voters that ask a model: name one with --assigner")
    refuse_idle_limits(chosen.models, chosen.max_calls, chosen.max_cost, "--proposer, --reviewer or --assigner")


def refuse_idle_limits(models: Sequence[str], max_calls: int | None, max_cost: float | None, options: str) -> None:
    """Raise InputError for a limit of calls or money that would limit nothing.

    Args:
        models: names, of the catalogue, of those that are asked.
        max_calls, max_cost: see `Budget`.
        options: of the command, by which models are named.
    """
    if not models and (max_calls is not None or max_cost is not None):
        option = "--max-cost" if max_calls is None else "--max-calls"
        raise InputError(f"{option} limits calls of models: name one with {options}")
    if max_cost is not None and not any(MODELS[name].cost_per_1000 for name in models):
        raise InputError(f"--max-cost needs a price: set cost_per_1000 of {models[0]} in the catalogue")
