"""The protocols that the proxy speaks, by name."""

from __future__ import annotations

from merton.errors import UnknownNameError
from merton.proxy.protocols.act import Act
from merton.proxy.protocols.base import Protocol
from merton.proxy.protocols.openpi import OpenPi
from merton.proxy.protocols.vla_eval import VlaEval

PROTOCOLS: dict[str, Protocol] = {one.name: one for one in (VlaEval(), OpenPi(), Act())}


def protocol_named(name: str) -> Protocol:
    """A protocol by its name; raises UnknownNameError."""
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
