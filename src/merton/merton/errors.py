"""The one exception tree of Merton.

Wrong input of any kind raises an `InputError`. Its text is one sentence, which names the offender and lists the valid
choices; the command line prints that sentence and exits with 2.
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

from merton import __version__


class ErrorCode(IntEnum):
    """The `error_code` of messages and records.

    1xx model, 2xx kinematics, 3xx safety, 4xx hardware and graph, 5xx scoring and record. Everything from 400 on, STALE
    and OUT_OF_ORDER are no fault of the agent and never its score.
    """

    meaning: str
    """One clause, as `merton errors` prints it."""

    def __new__(cls, number: int, meaning: str) -> ErrorCode:
        code = int.__new__(cls, number)
        code._value_, code.meaning = number, meaning
        return code

    OK = 0, "no error"
    MODEL_FAILED = 100, "the model raised an error"
    INVALID_ACTION = 101, "the output is no usable action or no text, and nothing moved; in a record also: it failed"
    NO_ANSWER = 102, "the VLM gave no answer to an image: the trial has no cognition score; in a record alone"
    NO_END = (
        103,
        "an episode of another program ended without word of its success and counts as none; in a record alone",
    )
    UNREACHABLE = 201, "a delta is out of reach"
    BRANCH_FLIP = 202, "a joint would turn more than limits.joint_step_rad in one delta: the kinematics changed branch"
    STEP_LIMIT = 301, "a delta is longer or turns further than a step may"
    SPEED_LIMIT = 302, "a delta asks for too fast a tool or joint, or would even limits.most_slowdown times slower"
    WORKSPACE = 303, "a delta leaves the workspace"
    COLLISION = 304, "a delta would come too near to table or wall, now or before: the stop latched"
    STOPPED = 305, "stopped by a person or held for a fault, now or before"
    SELF_COLLISION = 306, "a delta would bring the arm too near to itself"
    STALE = (
        307,
        "the view is too old, of another clock or of unknown quality, or a watched camera is silent: no latch",
    )
    OUT_OF_ORDER = 308, "the chunk came late: a later one of its trial is done"
    ACCELERATION_LIMIT = 309, "a delta is so abrupt that limits.most_slowdown times slower would not do"
    CONTACT = 310, "table or wall touched, now or before: the stop latched"
    IMAGE_QUALITY = 311, "an image that the chunk was decided on is worse than min_image_quality, and nothing moved"
    INFRASTRUCTURE = 400, "a node, a device or a disk failed, or did not answer in time"
    NOT_INSTALLED = 401, "an extra or the weights of the model are not installed; the sentence says how to get them"
    BAD_GOAL = 402, "the goal is wrong: a name that does not exist, or a run that has results already"
    NOT_JUDGED = 403, "the judge could not tell whether the task was done, or did not answer in time"
    ARM_FAILED = 404, "the arm cannot carry out the chunk: no joint states, no way past the gate, or no rest"
    NOT_SERVED = 405, "the model could not be asked: node not active, no such model, failed server, bad request, late"
    NO_SCENE = 406, "the policy needs the state of the scene, and the cell does not publish it"
    RESET_REFUSED = 407, "the scene cannot be prepared: no such scene, refused by the operator, or arm not at home"
    LOADING = 408, "the model is being loaded: ask again"
    NOT_PAIRED = 409, "an episode began with another scene than its undistorted one, or was not distorted; in records"
    UNEXPECTED = 499, "a fault in Merton; the log of the node has its trace"
    SCORING_FAILED = 500, "the inputs cannot be scored"
    NOT_STORED = 502, "the result was not stored"


MODEL_ERRORS = range(100, 200)
"""Codes of the model's own errors."""

GATE_ERRORS = frozenset(
    {
        ErrorCode.UNREACHABLE,
        ErrorCode.BRANCH_FLIP,
        ErrorCode.STEP_LIMIT,
        ErrorCode.SPEED_LIMIT,
        ErrorCode.WORKSPACE,
        ErrorCode.COLLISION,
        ErrorCode.SELF_COLLISION,
        ErrorCode.ACCELERATION_LIMIT,
    }
)
"""Codes with which the gate ends a chunk because of its next delta, before anything is touched."""


class MertonError(Exception):
    """Base of every error Merton raises on purpose."""


class InputError(MertonError, ValueError):
    """A value from outside is wrong; the text names it and the valid ones."""


class FileError(InputError):
    """A file cannot be read, or has a mistake; the text names it.

    A file that reads another one is not blamed for it: the text of such an error stays as it is.
    """


LISTS = {
    "distortion": "merton distort list",
    "error code": "merton errors",
    "task": "docs/use/tasks.md",
    "world": "merton world list",
    **dict.fromkeys(("model", "vlm", "vla", "agent or vla"), "merton model list"),
}
"""The command or page that lists the names of a kind."""
SHORT_LIST = 12
"""So many names are listed beside a near one, at most."""


def near_miss(name: str, choices: Iterable[str]) -> str | None:
    """The one of `choices` that `name` is most like, capital letters aside; None if none is like it."""
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.65)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """The question after the name that `name` may stand for, with a space behind it; empty if none is like it."""
    near = near_miss(name, choices)
    return "" if near is None else f"did you mean {near!r}? "


def _choices(kind: str, name: str, choices: list[str]) -> str:
    """The near miss and the choices; of many choices beside a near miss, the command that lists them."""
    hint = did_you_mean(name, choices)
    if hint and len(choices) > SHORT_LIST:
        return (
            f"{hint}All {len(choices)}: {LISTS[kind]}"
            if kind in LISTS
            else f"{hint}there are {len(choices) - 1} others"
        )
    return f"{hint}choose one of: {', '.join(choices)}"


class UnknownNameError(InputError, KeyError):
    """A name that is not in a registry, and the names that are; `kind` is the entries' noun, such as "distortion".

    `hint` is a clause that the text ends with, such as where further names are read from.
    """

    def __init__(self, kind: str, name: object, choices: Iterable[object], hint: str = "") -> None:
        self.kind, self.name, self.choices = kind, name, sorted(str(choice) for choice in choices)
        ending = f"; {hint}" if hint else ""
        super().__init__(f"unknown {kind} {str(name)!r}; {_choices(kind, str(name), self.choices)}{ending}")
        self.hint = hint

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, object, list[str], str]]:  # between processes
        return type(self), (self.kind, self.name, self.choices, self.hint)

    def __str__(self) -> str:  # KeyError would show the repr of the text
        return str(self.args[0])


class MissingDependencyError(MertonError):
    """A package that has to be installed is absent; the text names the command that installs it."""


class InvalidActionError(MertonError):
    """A model's output is not a usable action (NaN, wrong shape, out of every bound). An outcome, not a crash."""


class InvalidAnswerError(MertonError):
    """A VLM failed where it runs, or its answer is not a text: there is no answer, and nothing to score.

    An empty text is an answer.
    """


class OperatorStopError(MertonError):
    """A person has stopped the arm. The running motion ends; only that person may release the arm."""


class InfrastructureError(MertonError):
    """A server, node, camera or disk failed. Never counted as a model's score."""


class LateAnswerError(InfrastructureError):
    """A server took a request and did not answer within the deadline; other requests of the same batch may go on."""


class LoadingError(InfrastructureError):
    """The model is being loaded, which may take minutes: ask again."""


def missing(module: str, extra: str, user: str) -> MissingDependencyError:
    """The error for a module of an extra that is not installed; `user` names the feature, such as "Parquet"."""
    return MissingDependencyError(f"{user} needs {module}: {install_line(extra)}")


STUDIES_EXTRAS = ("curation", "people")
"""Extras of merton-studies; all others are of merton."""


def install_line(*extras: str) -> str:
    """A clause that says how the Python that runs gets some extras, all in one command.

    The command names the distributions whose metadata have the extras, at the version that is installed: pip then adds
    the extras' packages and leaves the rest as it is. Where none is installed, it names the folder of the checkout.
    """
    owners: dict[str, list[str]] = {}
    for extra in extras:
        owners.setdefault(_owner(extra), []).append(extra)
    requirements, wheels = [], []
    for owner, names in owners.items():
        distribution, equals, version = owner.partition("==")
        if version:
            requirements.append(f"{distribution}[{','.join(names)}]{equals}{version}")
        elif folder := _folder_of(distribution):
            requirements.append(f"{folder}[{','.join(names)}]")
        else:
            wheels.append(_wheel_line(distribution, names))
    return "; ".join([*([_pip_line(*requirements)] if requirements else []), *wheels])


def _owner(extra: str) -> str:
    """The distribution that has an extra, with "==" and its version if that is installed."""
    name = "merton-studies" if extra in STUDIES_EXTRAS else "merton"
    for installed in metadata.distributions(name=name):  # colcon's may lie before pip's
        if extra in (installed.metadata.get_all("Provides-Extra") or ()):
            return f"{name}=={installed.version}"
    return name


def studies_line() -> str:
    """A clause that says how the Python that runs gets merton-studies."""
    folder = _folder_of("merton-studies")
    return _pip_line(str(folder)) if folder else _wheel_line("merton-studies", ())


def _folder_of(distribution: str) -> Path | None:
    """The folder of a distribution in the checkout; None in an installed wheel."""
    checkout = _checkout()
    return checkout and (checkout if distribution == "merton" else checkout / "src" / "merton_studies")


def _wheel_line(distribution: str, extras: Sequence[str]) -> str:
    """Instruction to install a distribution from its wheel: by its bare name an index has another project."""
    plural = "s" if len(extras) > 1 else ""
    asked = f"{__version__} with the extra{plural} {', '.join(extras)}" if extras else __version__
    return f"install the wheel of {distribution} {asked}, which `make dist` in a checkout writes"


def _pip_line(*requirements: str) -> str:
    """A clause that ends with the command that installs requirements, for any shell and any folder.

    In a checkout the packages that it brings are those that `requirements/lock.txt` pins.
    """
    checkout = _checkout()
    pins = () if checkout is None else ("-c", str(checkout / "requirements" / "lock.txt"))
    return f"install it with {shlex.join((sys.executable, '-m', 'pip', 'install', *pins, *requirements))}"


def _checkout() -> Path | None:
    """The root of the checkout that this file is in; None in an installed wheel."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "requirements" / "lock.txt").is_file() else None


@contextmanager
def needing(extra: str, user: str) -> Iterator[None]:
    """Around the imports of an extra: raises MissingDependencyError (see `missing`) for a package that is absent.

    A package that is installed but broken is named with its error, which has the missing part.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(error.name or str(error), extra, user) from None
    except ImportError as error:
        raise missing_library(error) or missing(f"{error.name} ({error})", extra, user) from None


def require(module: str, extra: str, user: str) -> ModuleType:
    """Import a module of an extra; raises MissingDependencyError (see `needing`) if that fails."""
    with needing(extra, user):
        return import_module(module)


INFRASTRUCTURE_ERRORS = (InfrastructureError, MissingDependencyError, ImportError, OSError, MemoryError)
"""Errors that are no outcome of the model which raises them: a missing server, package, file or memory says nothing
about it. Ours: code of a lab raises the types of Python, and OSError has ConnectionError, TimeoutError and files."""
INFRASTRUCTURE_NAMES = frozenset(
    {"OutOfMemoryError", "TransportError", "APIConnectionError", "ConnectionClosed", "RpcError", "TimeoutError"}
)
"""Classes of the same meaning in libraries that Merton need not import: torch, httpx (and httpx2), openai (and
anthropic), websockets, grpc, and the two of asyncio and concurrent.futures, which Python 3.10 keeps apart from its own.
`merton.models.serving`, which is copied alone, has the same names."""
LONGEST_REASON = 1000
"""Characters of an error's text in a sentence; a library may put a whole array or page into it."""


def is_infrastructure(error: BaseException) -> bool:
    """Whether an error is no outcome of the model that raised it, by its class or the name of one of its classes."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, INFRASTRUCTURE_ERRORS) or not names.isdisjoint(INFRASTRUCTURE_NAMES)


def reason_of(error: Exception) -> str:
    """An error in one line: the text of Merton's up to `LONGEST_REASON` characters, any other as `describe_error`."""
    return _one_line(error) if isinstance(error, MertonError) else describe_error(error)


def _one_line(error: Exception) -> str:
    """The text of an error on one line of `LONGEST_REASON` characters at most."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"


def missing_library(error: ImportError) -> MissingDependencyError | None:
    """The error for a package that is installed and needs a shared library that this system lacks; None for another."""
    found = re.match(r"(lib[\w.+-]+): cannot open shared object file", str(error))
    if found is None:
        return None
    package = SYSTEM_PACKAGES.get(found[1], "the package that has it")
    return MissingDependencyError(f"this system lacks {found[1]}: install {package} with its package manager")


SYSTEM_PACKAGES = {"libgomp.so.1": "libgomp1", "libGL.so.1": "libgl1", "libEGL.so.1": "libegl1"}
"""Shared library to its package in Debian and Ubuntu: those that pinocchio and MuJoCo need and no wheel brings."""


def describe_error(error: Exception) -> str:
    """An error raised by code that is not Merton's, in one line: its type, its text up to
    `LONGEST_REASON` characters, file and line."""
    frames = traceback.extract_tb(error.__traceback__)
    text = f"{type(error).__name__}: {_one_line(error)}"
    if not frames or isinstance(error, SyntaxError):  # the text of a SyntaxError names the place itself
        return text
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})"
