"""Who a token stands for: raters by the file of tokens or by registration, and the operator."""

from __future__ import annotations

import hashlib
import secrets
import threading

from merton.errors import InputError
from merton.people.invitations import OPERATOR, REGISTER
from merton.people.ledger import Rater, Role
from merton.people.study import Study
from merton.web.access import Tokens

LONGEST_NAME = 60


class RegistrationError(InputError):
    """A person may not register; the text is one sentence for that person."""


class People:
    """The persons of a study. Safe to share between threads.

    Without a file of tokens, as on loopback, a person enters a name and is known by it: the same name has the same
    work. With one, each rater has a token; its owner is the rater's name. The token of "register" lets people
    register, each with a token that the server makes and shows once.

    Args:
        study: whose ledger keeps them.
        tokens: None if every client may register.

    Raises:
        InputError: a token belongs to a name that the project does not have.
    """

    def __init__(self, study: Study, tokens: Tokens | None) -> None:
        self._study, self._tokens = study, tokens
        self._entered: dict[str, str] = {}  # SHA-256 of a token to the pseudonym, of those who came again by name
        self._lock = threading.Lock()
        project = study.project
        for name in (OPERATOR, REGISTER):
            if name in project.experts or (isinstance(project.raters, tuple) and name in project.raters):
                raise InputError(f"the project has a rater {name!r}: the owner of a token of that name is no rater")
        if tokens is not None and isinstance(project.raters, tuple):
            known = {*project.raters, *project.experts, OPERATOR, REGISTER}
            for owner in tokens.owners:
                if owner not in known:
                    raise InputError(f"the file of tokens has {owner!r}, and the project has no rater of that name")

    @property
    def open(self) -> bool:
        """Whether every client may register and see the operator's page."""
        return self._tokens is None

    def rater(self, token: str, arrive: bool = False) -> Rater | None:
        """The person of a token, or None.

        Args:
            token: of the request.
            arrive: True if the owner of a token in the file is to be registered on first coming. Only the opening of
                the page does so: a page that was left open must not bring back a person who has withdrawn.
        """
        if not token:
            return None
        digest = _sha256(token)
        raters = self._study.ledger.raters()
        entered = self._entered.get(digest)
        for one in raters:
            if one.token_sha256 == digest or one.id == entered:
                return one
        owner = self._owner(token)
        if owner is None or owner in (OPERATOR, REGISTER):
            return None
        role = self._role(owner)
        found = next((one for one in raters if (one.name, one.role) == (owner, role)), None)
        return self._study.ledger.register(owner, role) if found is None and arrive else found

    def is_operator(self, token: str) -> bool:
        """Whether the token opens the statistics."""
        return self.open or self._owner(token) == OPERATOR

    def may_register(self, token: str) -> bool:
        """Whether the token lets a person register."""
        return self.open or self._owner(token) == REGISTER

    def known(self, token: str) -> bool:
        """Whether a token is valid for anything."""
        return bool(token) and (self.rater(token) is not None or self._owner(token) is not None)

    def register(self, name: str) -> tuple[Rater, str]:
        """A person with a new token; on loopback a known name comes back to its work.

        Raises:
            RegistrationError: the name is empty, taken, not invited, or all places are taken.
        """
        name = "".join(c for c in name if c.isprintable()).strip()[:LONGEST_NAME]
        if not name:
            raise RegistrationError("enter a name of at least one letter")
        if name in (OPERATOR, REGISTER):
            raise RegistrationError(f"{name!r} cannot be the name of a rater; enter another")
        project, ledger, role = self._study.project, self._study.ledger, self._role(name)
        token = secrets.token_urlsafe(24)
        with self._lock:
            raters = ledger.raters()
            found = next((one for one in raters if (one.name, one.role) == (name, role)), None)
            if found is not None and not self.open:
                raise RegistrationError("this name is taken: open the link that you got first, or enter another name")
            if found is None and role == "rater":
                if isinstance(project.raters, tuple):
                    if name not in project.raters:
                        raise RegistrationError("this study is for people it has invited, by the names it knows")
                elif sum(one.role == "rater" for one in raters) >= project.raters:
                    raise RegistrationError(f"all {project.raters} places of this study are taken")
            if found is None:
                return ledger.register(name, role, _sha256(token)), token
            self._entered[_sha256(token)] = found.id
            return found, token

    def _owner(self, token: str) -> str | None:
        return None if self._tokens is None else self._tokens.owner(token)

    def _role(self, name: str) -> Role:
        return "expert" if name in self._study.project.experts else "rater"


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
