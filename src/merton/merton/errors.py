"""The one exception tree of Merton.

Everything a user can do wrong raises an `InputError` whose text is one sentence that names the offender and
lists the valid choices; the command line prints that sentence and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType


class MertonError(Exception):
    """Base of every error Merton raises on purpose."""


class InputError(MertonError, ValueError):
    """A value that came in from outside is wrong; the text says which one and what would be right."""


class UnknownNameError(InputError, KeyError):
    """A name that is not in a registry, with the names that are.

    Args:
        kind: what was looked for, such as "distortion".
        name: the name that was asked for.
        choices: the names that exist.
    """

    def __init__(self, kind: str, name: object, choices: Iterable[object]) -> None:
        self.kind, self.name, self.choices = kind, name, sorted(str(choice) for choice in choices)
        super().__init__(f"unknown {kind} {str(name)!r}; choose one of: {', '.join(self.choices)}")

    def __str__(self) -> str:  # KeyError would show the repr of the text
        return str(self.args[0])


class MissingDependencyError(MertonError):
    """Something that has to be installed is absent; the text names the command that installs it."""


class InvalidActionError(MertonError):
    """A model's output is not a usable action (NaN, wrong shape, out of every bound). An outcome, not a crash."""


class InvalidAnswerError(MertonError):
    """A VLM failed where it runs, or what it gave is no text. An outcome, not a crash; saying nothing is an answer."""


class OperatorStopError(MertonError):
    """A person has stopped the arm. Whatever was running ends; only that person may let it go on."""


class InfrastructureError(MertonError):
    """A server, node, camera or disk failed. Never counted as a model's score."""


def install_hint(extra: str) -> str:
    """The command that installs an extra of Merton, such as "dataset"."""
    return f"install it with pip install -r requirements/{extra}.txt, or pip install '.[{extra}]' in the checkout"


def missing(module: str, extra: str, user: str) -> MissingDependencyError:
    """The error for a module of an extra that is not installed; `user` is what needs it, such as "Parquet"."""
    return MissingDependencyError(f"{user} needs {module}: {install_hint(extra)}")


def require(module: str, extra: str, user: str) -> ModuleType:
    """Import a module of an extra; raises MissingDependencyError (see `missing`) if that fails."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error.name or module, extra, user) from None
    except ImportError as error:  # installed, but broken: the text says what it lacks
        raise missing(f"{error.name or module} ({error})", extra, user) from None


INFRASTRUCTURE_ERRORS = (InfrastructureError, MissingDependencyError)
"""What a model may raise without it being its outcome: nothing about the model follows from what is not there."""
