"""Names and addresses of machines."""

from __future__ import annotations

import ipaddress
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


def is_loopback_url(url: str) -> bool:
    """Whether a URL leads to this machine alone."""
    return is_loopback(urlsplit(url).hostname or "")
