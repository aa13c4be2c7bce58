"""A link for each person of a project: the tokens behind them are random, and only their hashes are kept."""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from merton.config import Model, dumps, load
from merton.errors import InfrastructureError, InputError
from merton.files import locked_folder, write_file, written_whole
from merton.web.access import TokenFile
from merton_studies.people.project import Project

OPERATOR, REGISTER = "operator", "register"
"""Owners of tokens that are no raters: the one who sees the statistics, and the link by which people register."""
TOKENS_FILE, LINKS_FILE = "tokens.yaml", "links.yaml"
_TOKEN_BYTES = 24


class LinkFile(Model):
    """A file of links: owner to the address that opens the owner's page."""

    links: dict[str, str]


@dataclass(frozen=True)
class Invitations:
    """The result of `invite`: the files and their owners.

    Attributes:
        tokens: the file for `merton people serve --tokens`: owner to SHA-256 of the token.
        links: as `LinkFile`; they open everybody's work, so only the user who made the file can read it.
        new: owners who got a link now.
        removed: owners whose link ended, as they are not in the project any more.
    """

    tokens: Path
    links: Path
    new: tuple[str, ...]
    removed: tuple[str, ...]


def owners_of(project: Project) -> dict[str, str]:
    """Owner of a token to role: each named rater and expert, "operator", and "register" if raters are not named.

    Raises:
        InputError: one name stands for two owners, so that its token would.
    """
    named = () if isinstance(project.raters, int) else project.raters
    owners = [*((name, "rater") for name in named), *((name, "expert") for name in project.experts)]
    owners += [(OPERATOR, OPERATOR), *([] if named else [(REGISTER, REGISTER)])]
    found: dict[str, str] = {}
    for name, role in owners:
        if name in found:
            raise InputError(f"{name!r} is the name of two: of a {found[name]} and of the {role}; change one of them")
        found[name] = role
    return found


def invite(project: Project, folder: Path, url: str) -> Invitations:
    """Make a link for each owner who has none in the folder, and end those of people who left the project.

    Args:
        project: with its people.
        folder: of `TOKENS_FILE` and `LINKS_FILE`; made where there is none.
        url: address of the server, such as "https://study.example.org".

    Raises:
        InputError: the address is none, one name stands for two owners, or one of the two files is missing or wrong.
    """
    if not url.startswith(("http://", "https://")) or "#" in url or not url.isprintable() or " " in url:
        raise InputError(f"an address begins with http:// or https:// and has no space and no #, got {url[:80]!r}")
    owners = owners_of(project)
    with locked_folder(folder, "merton people invite"):
        hashes, links = _known(folder)
        tokens = {owner: secrets.token_urlsafe(_TOKEN_BYTES) for owner in owners if owner not in hashes}
        removed = tuple(owner for owner in hashes if owner not in owners)
        links |= {owner: f"{url.rstrip('/')}/#{token}" for owner, token in tokens.items()}
        hashes |= {owner: hashlib.sha256(token.encode()).hexdigest() for owner, token in tokens.items()}
        _write_links(folder / LINKS_FILE, {owner: links[owner] for owner in owners})  # a hash without one is no use
        write_file(folder / TOKENS_FILE, dumps({"tokens": {owner: hashes[owner] for owner in owners}}).encode())
    return Invitations(folder / TOKENS_FILE, folder / LINKS_FILE, tuple(tokens), removed)


def _known(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Hash and link of each owner who has both."""
    tokens, links = folder / TOKENS_FILE, folder / LINKS_FILE
    if not tokens.exists():
        return {}, {}
    if not links.exists():
        raise InputError(f"{tokens} has no {LINKS_FILE} beside it; remove it, or choose another folder")
    linked = load(links, LinkFile).links
    return {owner: digest for owner, digest in load(tokens, TokenFile).tokens.items() if owner in linked}, dict(linked)


def _write_links(path: Path, links: dict[str, str]) -> None:
    try:
        with written_whole(path) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(dumps({"links": links}).encode())
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror or error}") from None
