"""Every protocol by the name that a project file calls it."""

from __future__ import annotations

from merton.errors import UnknownNameError
from merton_studies.people.protocol import Protocol
from merton_studies.people.protocols.episodes import Episodes
from merton_studies.people.protocols.labels import Labels
from merton_studies.people.protocols.likert import Likert
from merton_studies.people.protocols.pairs import Pairs
from merton_studies.people.protocols.quality import Quality
from merton_studies.people.protocols.tasks import Tasks
from merton_studies.people.protocols.trials import Trials

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Labels(),
        Likert(),
        Pairs(),
        Tasks(),
        Episodes(),
        Trials(),
        Quality(),
    )
}  # fmt: skip


def protocol_named(name: str) -> Protocol:
    """The protocol called so in a project file; raises UnknownNameError with the valid names."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
