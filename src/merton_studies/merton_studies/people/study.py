"""A study: all that belongs to one project, opened once, for the pages, the statistics and the exports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from merton.progress import OnProgress, unseen
from merton_studies.people.desk import Desk
from merton_studies.people.item import Item
from merton_studies.people.ledger import Ledger
from merton_studies.people.project import Loaded, Project
from merton_studies.people.protocol import Protocol


@dataclass(frozen=True)
class Study:
    """A project with its items, its rules and its record.

    Attributes:
        project: the file.
        folder: of the file; exports and prepared media lie below it.
        definition: canonical JSON of the project.
        sha256: of the definition.
        items: in the order of their source.
        protocol: its rules.
        ledger: its record.
        desk: deals its items.
    """

    project: Project
    folder: Path
    definition: str
    sha256: str
    items: tuple[Item, ...]
    protocol: Protocol
    ledger: Ledger
    desk: Desk
    by_id: Mapping[str, Item] = field(init=False, repr=False)
    """Id to item."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {item.id: item for item in self.items})

    def close(self) -> None:
        """Close the record, after all answers are on the disk."""
        self.ledger.close()


def open_study(
    path: Path,
    on_progress: OnProgress = unseen,
) -> Study:
    """Open the study of a project file; its media are prepared where they are not.

    Args:
        path: PROJECT.yaml.
        on_progress: called with the items done and their number.

    Raises:
        InputError: the project is wrong, its items cannot be read or some of them are gone, the record has answers
            to another definition, or another server has this study of the record open.
        InfrastructureError: the record cannot be opened.
    """
    from merton_studies.people.project import read_project
    from merton_studies.people.protocols import protocol_named
    from merton_studies.people.sources import check_still_there, items_of

    loaded = read_project(path)
    protocol = protocol_named(loaded.project.protocol)
    items = items_of(loaded, on_progress)
    ledger = Ledger(loaded.record, loaded.project.name, loaded.definition, alone=True)
    try:
        check_still_there(loaded, items, (slot.item for slot in ledger.slots()))
        desk = Desk(loaded.project, items, protocol, ledger)
    except BaseException:
        ledger.close()
        raise
    return Study(loaded.project, loaded.folder, loaded.definition, loaded.sha256, tuple(items), protocol, ledger, desk)


@dataclass(frozen=True)
class RecordedStudy:
    """The items and answers of a study so far, for statistics and exports: a study without the desk.

    Attributes:
        loaded: the project.
        items: in the order of their source.
        protocol: its rules.
        ledger: its record.
    """

    loaded: Loaded
    items: tuple[Item, ...]
    protocol: Protocol
    ledger: Ledger


@contextmanager
def recorded_study(path: Path, on_progress: OnProgress = unseen) -> Iterator[RecordedStudy]:
    """The record of the study of a project file, open for the block; arguments and errors are those of `open_study`."""
    from merton_studies.people.project import read_project
    from merton_studies.people.protocols import protocol_named
    from merton_studies.people.sources import check_still_there, items_of

    loaded = read_project(path)
    with Ledger(loaded.record, loaded.project.name) as ledger:
        items = items_of(loaded, on_progress)
        check_still_there(loaded, items, (answer.item for answer in ledger.answers(undone=True)))
        yield RecordedStudy(loaded, items, protocol_named(loaded.project.protocol), ledger)
