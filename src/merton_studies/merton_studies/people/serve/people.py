"""The persons behind tokens: raters by the file of tokens or by registration, and the operator."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time

from merton.errors import InputError
from merton.web.access import Tokens
from merton_studies.people.invitations import OPERATOR, REGISTER, owners_of
from merton_studies.people.ledger import Rater, Role
from merton_studies.people.study import Study

LONGEST_NAME = 60
FRESH_S = 1.0
"""Greatest age of the list of persons [s]; then the record is read again, as another process may withdraw one."""


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
        InputError: a token belongs to a name that the project does not have, or one name stands for two people.
    """

    def __init__(self, study: Study, tokens: Tokens | None) -> None:
        self._study, self._tokens = study, tokens
        self._entered: dict[str, str] = {}  # SHA-256 of a token to the pseudonym, of those who came again by name
        self._registering, self._listing = threading.Lock(), threading.Lock()
        self._list: tuple[Rater, ...] = ()
        self._listed_s = -FRESH_S
        owners = owners_of(study.project)
        if tokens is not None and isinstance(study.project.raters, tuple):
            for owner in tokens.owners:
                if owner not in owners:
                    raise InputError(f"the file of tokens has {owner!r}, and the project has no person of that name")

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
        digest, raters = _sha256(token), self._raters()
        entered = self._entered.get(digest)
        for one in raters:
            if one.token_sha256 == digest or one.id == entered:
                return one
        owner = self._owner(token)
        if owner is None or owner in (OPERATOR, REGISTER):
            return None
        found = self._find(owner, raters)
        if found is None and arrive:
            found = self._study.ledger.register(owner, self._role(owner))
            self._forget()
        return found

    def is_operator(self, token: str) -> bool:
        """Whether the token opens the statistics."""
        return self.open or self._owner(token) == OPERATOR

    def may_register(self, token: str) -> bool:
        """Whether the token lets a person register."""
        return self.open or self._owner(token) == REGISTER

    def known(self, token: str) -> bool:
        """Whether a token is valid for anything."""
        return bool(token) and (self._owner(token) is not None or self.rater(token) is not None)

    def register(self, name: str) -> tuple[Rater, str]:
        """A person with a new token; on loopback a known name comes back to its work.

        Raises:
            RegistrationError: the name is empty, taken, not invited, or all places are taken.
        """
        name = "".join(c for c in name if c.isprintable()).strip()[:LONGEST_NAME].strip()
        if not name:
            raise RegistrationError("enter a name of at least one letter")
        token = secrets.token_urlsafe(24)
        with self._registering:
            self._forget()
            found = self._find(name, self._raters())
            if found is not None and self.open:
                self._entered[_sha256(token)] = found.id
                return found, token
            if found is not None or name in (OPERATOR, REGISTER):
                raise RegistrationError("this name is taken: open the link that you got first, or enter another name")
            self._check_place(name)
            rater = self._study.ledger.register(name, self._role(name), _sha256(token))
            self._forget()
            return rater, token

    def _check_place(self, name: str) -> None:
        """Raises RegistrationError if there is no place for this person."""
        project = self._study.project
        if name in project.experts:
            if not self.open:  # an expert has a token of the file
                raise RegistrationError("this name is taken: open the link that you were given")
        elif isinstance(project.raters, tuple):
            if name not in project.raters or not self.open:
                raise RegistrationError("this study is for people it has invited, by the names it knows")
        elif sum(one.role == "rater" for one in self._raters()) >= project.raters:
            raise RegistrationError(f"all {project.raters} places of this study are taken")

    def _raters(self) -> tuple[Rater, ...]:
        with self._listing:
            if time.monotonic() - self._listed_s > FRESH_S:
                self._list, self._listed_s = self._study.ledger.raters(), time.monotonic()
            return self._list

    def _forget(self) -> None:
        """Have the record read again for the next list of persons."""
        with self._listing:
            self._listed_s = -FRESH_S

    def _find(self, name: str, raters: tuple[Rater, ...]) -> Rater | None:
        role = self._role(name)
        return next((one for one in raters if (one.name, one.role) == (name, role)), None)

    def _owner(self, token: str) -> str | None:
        return None if self._tokens is None else self._tokens.owner(token)

    def _role(self, name: str) -> Role:
        return "expert" if name in self._study.project.experts else "rater"


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
