"""The protocols that the proxy speaks, by name."""

from merton.proxy.protocols.base import Protocol
from merton.proxy.protocols.known import PROTOCOLS, protocol_named

__all__ = ["PROTOCOLS", "Protocol", "base", "protocol_named"]
