"""The values of an experiment's fields: names that exist, whole levels, lists without repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, ValidatorFunctionWrapHandler

from merton.cognition.models.base import MODELS as VLMS
from merton.config import FaultError, one_of, text_like
from merton.decision.models.base import POLICIES
from merton.errors import UnknownNameError
from merton.experiment.world_facts import present
from merton.models.catalogue import OWN_FILE, VARIABLE
from merton.perception.distortion import all_distortions
from merton.perception.quality import no_reference_metrics
from merton.results.records import STAIRCASE
from merton.simulation.sensor import SENSORS
from merton.world.tasks import VARIABLE as TASKS_VARIABLE
from merton.worlds.entry import WORLDS

ONE_LEVEL: Literal["one"] = "one"
"""In place of a list of levels: `merton.experiment.plan.drawn_level`."""
Identifier = Annotated[
    str,
    text_like(
        r"^[a-z0-9][a-z0-9_-]{0,63}$",
        "lower-case letters, digits, _ and -, beginning with a letter or digit, at most 64",
    ),
]


def distinct(kind: str, key: Callable[[Any], object] = lambda value: value) -> AfterValidator:
    """A constraint of a tuple: no two of its values have the same key."""

    def check(values: tuple) -> tuple:
        keys = [key(value) for value in values]
        for number, value in enumerate(keys):
            if value in keys[:number]:
                raise FaultError(f"{kind} {value!r} is listed twice", number)
        return values

    return AfterValidator(check)


def one_or_list(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """A constraint of the levels: the word "one" or "staircase", or a list that `check` accepts."""
    if isinstance(value, str) and value not in (ONE_LEVEL, STAIRCASE):
        raise ValueError(f"must be {ONE_LEVEL!r}, {STAIRCASE!r} or a list of levels such as [0, 3], got {value!r}")
    return value if isinstance(value, str) else check(value)


def asks_for_the_task(prompt: str) -> str:
    """A constraint of a prompt: it contains the task."""
    if "{instruction}" not in prompt:
        raise ValueError(f"must contain {{instruction}}, where the task stands, got {prompt!r}")
    return prompt


OWN_MODELS = f"those of your own are read from ./{OWN_FILE} and the files that {VARIABLE} names"
OWN_TASKS = f"those of your own are read from the files that {TASKS_VARIABLE} names"
Task = Annotated[str, one_of("task", lambda: present().tasks, OWN_TASKS)]
DistortionName = Annotated[str, one_of("distortion", all_distortions)]


def _whole(level: Any) -> Any:
    """A constraint of a level: an experiment has whole ones."""
    if isinstance(level, float):
        raise ValueError(f"must be a whole number, got {level:g}: only `merton distort` takes levels between them")
    return level


def _known_world(name: str, info: ValidationInfo) -> str:
    """A constraint of a world: it is in the catalogue, unless the run that is read has its description."""
    if name not in WORLDS and name not in (info.context or {}).get("world", {}):
        raise UnknownNameError("world", name, WORLDS, OWN_MODELS)
    return name


Level = Annotated[int, Field(ge=0, le=5), BeforeValidator(_whole)]
Camera = Annotated[str, one_of("camera", lambda: present().cameras)]
SensorName = Annotated[str, one_of("sensor", SENSORS.keys)]
QualityMetric = Annotated[str, one_of("quality metric without a reference", no_reference_metrics)]
WorldName = Annotated[str, AfterValidator(_known_world)]
VlmName = Annotated[str, one_of("vlm", VLMS.keys, OWN_MODELS)]
VlaName = Annotated[str, one_of("vla", POLICIES.keys, OWN_MODELS)]
