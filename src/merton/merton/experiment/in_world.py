"""An experiment in a world: its names are checked by that world's facts, which it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, PrivateAttr, ValidationInfo, model_validator

from merton.config import FaultError
from merton.decision.models.base import PolicyEntry
from merton.errors import FileError, InputError
from merton.experiment.recorded import WithRecordedModels
from merton.experiment.world_facts import UR5, YARDSTICKS, WorldFacts, reading_of

ELSEWHERE = ("expert", "random")
"""Policies that act by the action space of a world, which the UR5 cell does not have."""


class InWorld(WithRecordedModels):
    """Base of an experiment that names its `world`."""

    _facts: WorldFacts = PrivateAttr(default_factory=WorldFacts)

    @model_validator(mode="wrap")
    @classmethod
    def _read_in_its_world(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Read the other fields by the facts of the world, those of the run if it is one's."""
        if isinstance(data, cls):
            return handler(data)
        world = data.get("world", UR5) if isinstance(data, Mapping) else UR5
        recorded = (info.context or {}).get("world", {}).get(world) if isinstance(world, str) else None
        try:
            with reading_of(world, recorded) as facts:
                read = handler(data)
        except FileError:  # of the catalogue: the experiment is not to blame
            raise
        except InputError as error:
            raise FaultError(str(error), "world") from None
        read._facts = facts
        return read

    @property
    def facts(self) -> WorldFacts:
        """Of its world."""
        return self._facts

    def vla_entry(self, name: str) -> PolicyEntry:
        """The entry of a VLA, as it looks in this world; raises UnknownNameError for none."""
        return super().vla_entry(name).among(self.facts.cameras)


def policy_fault(policy: PolicyEntry, facts: WorldFacts) -> str:
    """Why a policy cannot act in a world, in one sentence; empty if it can, or if that world is the UR5 cell."""
    if facts.description is None:
        is_elsewhere = policy.name in ELSEWHERE or policy.action == "rows"
        return f"{policy.name} acts in other worlds than the UR5 cell" if is_elsewhere else ""
    world, form = facts.name, facts.description.action.form
    if missing := [camera for camera in policy.cameras if camera not in facts.cameras]:
        return f"{policy.name} looks through the camera {missing[0]!r}, and {world} has: {', '.join(facts.cameras)}"
    if policy.needs_depth and not facts.can("depth"):
        return f"{policy.name} uses depth, which the pictures of {world} do not have"
    if policy.name in YARDSTICKS and policy.name != facts.yardstick:
        return f"{policy.name} decides from a state that {world} does not give"
    if policy.action not in ("any", form):
        columns = ", ".join(column.name for column in facts.description.action.columns)
        return f"{policy.name} gives {policy.action}, and {world} takes {form} of: {columns}"
    return ""


def refuse_foreign(policies: Iterable[tuple[int, PolicyEntry]], facts: WorldFacts) -> None:
    """Raise FaultError for the first agent, by its number, whose policy cannot act in the world."""
    for number, policy in policies:
        if fault := policy_fault(policy, facts):
            raise FaultError(fault, "agents", number, "vla")
