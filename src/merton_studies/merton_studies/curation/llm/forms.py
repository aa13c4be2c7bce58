"""Forms of the answers of roles: the content that is required, and the part kept where another part is not valid.

A form checks an answer against what was asked for: how many things, about which of them, in words of the model's own.
An answer that fails in one part is not refused whole: the valid part stays, and every fault is told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from merton.config import Model, validated
from merton.errors import InputError, did_you_mean
from merton.results.text import counted
from merton_studies.curation.agents import FEWEST, MOST, Critique, Finding
from merton_studies.curation.llm.reading import objects, parsed
from merton_studies.curation.taxonomy import OTHER, Dimension, Taxonomy

Result = TypeVar("Result")
ModelType = TypeVar("ModelType", bound=Model)

NEEDED = {"merge": 2, "split": 1, "drop": 1, "redefine": 1, "add": 0}
"""Least number of dimensions that a finding's action names."""
_LISTED = 12
"""Names in a fault, at most [ours]."""


@dataclass(frozen=True)
class ValidPart(Generic[Result]):
    """The valid part of an answer, and a sentence for each fault of the rest; a whole answer has none."""

    value: Result
    faults: tuple[str, ...] = ()


class Form(ABC, Generic[Result]):
    """The form of an answer."""

    @abstractmethod
    def read(self, text: str) -> ValidPart[Result]:
        """The valid part of an answer; raises InputError with a sentence for the model if there is none."""

    def join(self, first: ValidPart[Result], second: ValidPart[Result]) -> ValidPart[Result]:
        """One part of those of two tries: the one with fewer faults, of equal ones the second."""
        return first if len(first.faults) < len(second.faults) else second


class Whole(Form[ModelType]):
    """An answer that is a `schema` or nothing; `examples` are the texts of the prompt's own example."""

    def __init__(self, schema: type[ModelType], examples: Iterable[str] = ()) -> None:
        self._schema, self._examples = schema, frozenset(map(plain, examples))

    def read(self, text: str) -> ValidPart[ModelType]:
        """See `Form.read`."""
        value = parsed(text, self._schema)
        for name, content in value:
            if isinstance(content, str) and plain(content) in self._examples:
                raise InputError(f"{name} repeats the example of the prompt")
        return ValidPart(value)


class Proposal(Form[tuple[Dimension, ...]]):
    """Between `FEWEST` and `MOST` dimensions, each with a name and a definition of its own.

    Args:
        examples: texts of the prompt's own example, which define nothing.
    """

    def __init__(self, examples: Iterable[str] = ()) -> None:
        self._examples = frozenset(map(plain, examples))

    def read(self, text: str) -> ValidPart[tuple[Dimension, ...]]:
        """See `Form.read`."""
        entries, faults = _entries(text, "dimensions")
        found: list[Dimension] = []
        for number, entry in enumerate(entries, 1):
            try:
                found.append(self._dimension(entry, f"dimension {number}", found))
            except InputError as error:
                faults.append(str(error))
        if not FEWEST <= len(found) <= MOST:
            first = f"; {faults[0]}" if faults else ""
            count = counted(len(found), "valid dimension")
            raise InputError(f"the answer has {count}, and between {FEWEST} and {MOST} are asked for{first}")
        return ValidPart(tuple(found), tuple(faults))

    def _dimension(self, entry: Any, where: str, earlier: Sequence[Dimension]) -> Dimension:
        found = validated(Dimension, _known_keys(entry, Dimension, where), where)
        taken = {OTHER.lower(), *(one.name.lower() for one in earlier)}
        if found.name.lower() in taken:
            raise InputError(f"{where}: the name {found.name!r} is taken")
        definition = plain(found.definition)
        if definition in self._examples:
            raise InputError(f"{where}, {found.name}: the definition repeats the example of the prompt")
        if not any(map(str.isalpha, definition)) or definition in (plain(found.name), plain(found.title)):
            raise InputError(f"{where}, {found.name}: {found.definition[:60]!r} defines nothing")
        if same := next((one.name for one in earlier if plain(one.definition) == definition), None):
            raise InputError(f"{where}, {found.name}: it has the definition of {same}")
        return found


class Review(Form[Critique]):
    """Findings about dimensions of a set; none at all accepts the set, so a list without a valid one is refused."""

    def __init__(self, taxonomy: Taxonomy, examples: Iterable[str] = ()) -> None:
        self._taxonomy, self._examples = taxonomy, frozenset(map(plain, examples))

    def read(self, text: str) -> ValidPart[Critique]:
        """See `Form.read`."""
        content, faults = _object(text, "findings")
        entries = _listed_in(content, "findings")
        found: list[Finding] = []
        for number, entry in enumerate(entries, 1):
            try:
                found.append(self._finding(entry, f"finding {number}", faults))
            except InputError as error:
                faults.append(str(error))
        if faults and not found:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise InputError(f"{faults[0]}{more}")
        summary = content.get("summary")
        told = summary if isinstance(summary, str) and plain(summary) not in self._examples else ""
        return ValidPart(Critique(findings=tuple(found), summary=told, dropped=tuple(faults)), tuple(faults))

    def _finding(self, entry: Any, where: str, faults: list[str]) -> Finding:
        """A finding with the names that exist; the others are faults."""
        said = _known_keys(entry, Finding, where)
        for key in ("kind", "action"):
            if isinstance(said.get(key), str):
                said[key] = said[key].strip().lower()
        names = said.get("dimensions", ())
        said["dimensions"] = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list) else names
        found = validated(Finding, said, where)
        if plain(found.text) in self._examples:
            raise InputError(f"{where}: the text repeats the example of the prompt")
        known = {name: canonical(name, self._taxonomy.names) for name in found.dimensions}
        there = tuple(dict.fromkeys(name for name in known.values() if name))
        unknown = [name for name, is_known in known.items() if not is_known]
        if len(there) < (needed := NEEDED[found.action]):
            raise InputError(
                f"{where}: {found.action} names at least {needed} of {_listed(map(repr, self._taxonomy.names))}, "
                f"got {_listed(map(repr, found.dimensions)) or 'none'}"
            )
        if unknown and found.action != "add":  # which may name the new one
            faults.append(
                f"{where}: {_listed(map(repr, unknown))} is no dimension; "
                f"{did_you_mean(unknown[0], self._taxonomy.names)}there are: {_listed(self._taxonomy.names)}"
            )
        return found.model_copy(update={"dimensions": there})


class Ballot(Form[Mapping[str, str]]):
    """A vote for each of some ids: id to the name of a dimension, or "Other"."""

    def __init__(self, ids: Sequence[str], taxonomy: Taxonomy) -> None:
        self._ids, self._names = tuple(ids), (*taxonomy.names, OTHER)

    def read(self, text: str) -> ValidPart[Mapping[str, str]]:
        """See `Form.read`; an id that is there twice with two dimensions has no vote, and other ids do not count."""
        entries, faults = _entries(text, "votes")
        said: dict[str, set[str]] = {}
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("id"), str) and isinstance(entry.get("dimension"), str):
                said.setdefault(entry["id"].strip(), set()).add(entry["dimension"].strip())
        votes: dict[str, str] = {}
        for name in self._ids:
            dimensions = {canonical(one, self._names) for one in said.get(name, ())}
            if len(dimensions) > 1:
                faults.append(f"{name} has two different votes")
            elif dimension := next(iter(dimensions), None):
                votes[name] = dimension
            elif name in said:
                faults.append(f"{name}: {next(iter(said[name]))[:60]!r} is no dimension")
        missing = [name for name in self._ids if name not in said]
        if missing:
            faults.append(f"{len(missing)} of {len(self._ids)} votes are missing: {_listed(missing)}")
        if not votes:
            raise InputError(f"no vote is valid: {faults[0]}" if faults else "no vote is valid")
        return ValidPart(votes, tuple(faults))

    def join(
        self, first: ValidPart[Mapping[str, str]], second: ValidPart[Mapping[str, str]]
    ) -> ValidPart[Mapping[str, str]]:
        """The first try's votes, and of the second those that the first lacks."""
        votes = {**second.value, **first.value}
        missing = [name for name in self._ids if name not in votes]
        told = f"two tries gave {len(votes)} of {len(self._ids)} votes; there is none for {_listed(missing)}"
        return ValidPart(votes, (told, *second.faults) if missing else ())


def canonical(name: str, names: Iterable[str]) -> str | None:
    """The one of some names that `name` stands for, capital letters and spaces around it aside; None for none."""
    return {one.lower(): one for one in names}.get(name.strip().lower())


def plain(text: str) -> str:
    """A text for comparison: without capital letters, repeated spaces and the full stop."""
    return " ".join(text.lower().split()).rstrip(".")


def _object(text: str, key: str) -> tuple[dict[str, Any], list[str]]:
    """The last object with a key in an answer, or else the last one; of one that breaks off in a list of objects, what
    comes before, and the fault.

    Raises:
        InputError: as `merton_studies.curation.llm.reading.objects`.
    """
    faults: list[str] = []
    try:
        found = objects(text)
    except InputError as error:
        try:
            found = objects(text[: text.rfind("}") + 1] + "]}")
        except InputError:
            raise error from None
        faults = [f"the answer breaks off: {error}"]
    return next((one for one in reversed(found) if key in one), found[-1]), faults


def _entries(text: str, key: str) -> tuple[list[Any], list[str]]:
    """The list under a key of an answer's object, and the faults so far; raises InputError for none."""
    content, faults = _object(text, key)
    return _listed_in(content, key), faults


def _listed_in(content: Mapping[str, Any], key: str) -> list[Any]:
    if key not in content:
        there = f"; it has: {_listed(content)}" if content else ""
        raise InputError(f"the answer: {key}: is missing{there}")
    if not isinstance(content[key], list):
        raise InputError(f"the answer: {key}: must be a list")
    return list(content[key])


def _known_keys(entry: Any, model: type[Model], where: str) -> dict[str, Any]:
    """The fields of a model in an entry; further ones that a model of language adds do no harm."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: must be a mapping with the keys {', '.join(model.model_fields)}")
    if not any(key in model.model_fields for key in entry):
        near = did_you_mean(next(iter(entry), ""), model.model_fields)
        raise InputError(f"{where}: has none of the keys {', '.join(model.model_fields)}; {near}".rstrip("; "))
    return {key: value for key, value in entry.items() if key in model.model_fields and value is not None}


def _listed(names: Iterable[str]) -> str:
    """Names with commas, of many the first and the number of others."""
    several = [name[:60] for name in names]
    more = f" and {len(several) - _LISTED} more" if len(several) > _LISTED else ""
    return ", ".join(several[:_LISTED]) + more
