"""Names and addresses of machines."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit


def is_address(text: str) -> bool:
    """Whether this is an IP address, version 4 or 6."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a name or an address belongs to this machine alone: no other machine reaches it, no proxy is needed."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def own_addresses(url: str) -> list[str]:
    """The addresses to which a URL leads now and that are no public ones; none if its name is not known.

    Of this machine, a private network, or a link (a cloud's metadata); written as a number or a name, too.
    """
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname or "", parts.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    plain = {str(address[4][0]).partition("%")[0] for address in found}
    return sorted(text for text in plain if not _is_public(ipaddress.ip_address(text)))


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inner or address).is_global and not (inner or address).is_multicast


def is_loopback_url(url: str) -> bool:
    """Whether a URL leads to this machine alone."""
    return is_loopback(urlsplit(url).hostname or "")
