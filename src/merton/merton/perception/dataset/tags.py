"""Four tags and five tasks of every reference image, from a YAML or CSV file beside the images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from merton.errors import InputError, UnknownNameError
from merton.results.tables import read_cells, utf8_text
from merton.results.text import one_line
from merton.world.tasks import VERBS as TASK_VERBS

CATEGORIES: dict[str, tuple[str, ...]] = {
    "domain": ("simulation", "real"),
    "perspective": ("first_person", "third_person"),
    "object": ("block", "container", "food", "tool", "living"),
    "background": ("table", "kitchen", "room", "outdoors", "plain"),
}
"""Tag to its values. The four tags are those of Embodied-IQA, section 3.1; the names of the five objects and
backgrounds are ours: the paper shows them in a figure only."""

VERBS = tuple(sorted(name.capitalize() for name in TASK_VERBS))
"""The first word of every task: the paper's ten, and Reach."""

TASKS_PER_IMAGE = 5

TAG_FILES = ("tags.yaml", "tags.csv", "tasks.yaml", "tasks.csv")
"""Names of the tag file; a folder holds one of them."""

_COLUMNS = (*CATEGORIES, *(f"task_{number}" for number in range(1, TASKS_PER_IMAGE + 1)))


@dataclass(frozen=True)
class Tags:
    """Tags and tasks of one image.

    Attributes:
        domain, perspective, object, background: one value each of `CATEGORIES`.
        tasks: five instructions, the easiest first; each begins with one of `VERBS`.

    All are empty where a folder of images has no tag file.
    """

    domain: str = ""
    perspective: str = ""
    object: str = ""
    background: str = ""
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Text:
    """A value of the file, and its line."""

    value: str
    line: int


def find_tags(references: Path) -> Path | None:
    """The tag file in a folder of images, None if there is none; raises InputError if there is more than one."""
    found = [references / name for name in TAG_FILES if (references / name).is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"{str(references)!r} holds {names}; it may hold one of: {', '.join(TAG_FILES)}")
    return found[0] if found else None


def read_tags(file: Path) -> dict[str, Tags]:
    """Image file name to its tags, in the order of the file.

    YAML: a mapping from file name to {domain, perspective, object, background, tasks: [five texts]}. CSV: the columns
    file, domain, perspective, object, background, task_1 .. task_5.

    Raises:
        InputError: an entry is missing, unknown, doubled or malformed; the text names the file and the line.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the tag file {str(file)!r}: {error}") from None
    is_csv = file.suffix.lower() == ".csv"
    entries = _csv_entries(file, content) if is_csv else _yaml_entries(file, utf8_text(file.name, content))
    tags: dict[str, Tags] = {}
    for name, fields, tasks in entries:
        if name.value in tags:
            raise _wrong(file, name.line, f"{name.value!r} has an entry already")
        tags[name.value] = _checked(file, name, fields, tasks)
    if not tags:
        raise InputError(f"the tag file {str(file)!r} has no entries")
    return tags


_Entry = tuple[_Text, dict[str, _Text], list[_Text]]


def _checked(file: Path, name: _Text, fields: dict[str, _Text], tasks: list[_Text]) -> Tags:
    for tag, choices in CATEGORIES.items():
        if tag not in fields:
            raise _wrong(file, name.line, f"{name.value!r} has no {tag}; choose one of: {', '.join(choices)}")
        if fields[tag].value not in choices:
            raise _wrong(file, fields[tag].line, str(UnknownNameError(tag, fields[tag].value, choices)))
    if unknown := [tag for tag in fields if tag not in CATEGORIES]:
        refused = UnknownNameError("entry", unknown[0], (*CATEGORIES, "tasks"))
        raise _wrong(file, fields[unknown[0]].line, str(refused))
    if len(tasks) != TASKS_PER_IMAGE:
        raise _wrong(file, name.line, f"{name.value!r} must have {TASKS_PER_IMAGE} tasks, got {len(tasks)}")
    for task in tasks:
        verb, *rest = task.value.split() or [""]
        if verb not in VERBS:
            raise _wrong(file, task.line, f"a task must begin with one of {', '.join(VERBS)}; got {task.value!r}")
        if not rest:
            raise _wrong(file, task.line, f"the task {task.value!r} does not say what to handle")
    if len({task.value for task in tasks}) != TASKS_PER_IMAGE:
        raise _wrong(file, name.line, f"{name.value!r} has the same task twice")
    values = {tag: fields[tag].value for tag in CATEGORIES}
    return Tags(tasks=tuple(task.value for task in tasks), **values)


def _yaml_entries(file: Path, text: str) -> Iterator[_Entry]:
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _wrong(file, line, f"this is not YAML: {error.problem}") from None
    except YAMLError as error:
        raise InputError(f"{file.name} is not YAML: {error}") from None
    if root is None:
        return
    for name, entry in _mapping(file, root, "image file names"):
        fields: dict[str, _Text] = {}
        tasks: list[_Text] = []
        for key, value in _mapping(file, entry, "tags"):
            if key.value in fields or (key.value == "tasks" and tasks):
                raise _wrong(file, key.line, f"{key.value!r} stands twice")
            if key.value == "tasks":
                if not isinstance(value, SequenceNode):
                    raise _wrong(file, key.line, f"tasks must be a list of {TASKS_PER_IMAGE} texts")
                tasks = [_scalar(file, item) for item in value.value]
            else:
                fields[key.value] = _scalar(file, value)
        yield name, fields, tasks


def _mapping(file: Path, node: Node, of: str) -> Iterator[tuple[_Text, Node]]:
    if not isinstance(node, MappingNode):
        raise _wrong(file, node.start_mark.line + 1, f"a mapping of {of} is wanted here")
    for key, value in node.value:
        yield _scalar(file, key), value


def _scalar(file: Path, node: Node) -> _Text:
    if not isinstance(node, ScalarNode):
        raise _wrong(file, node.start_mark.line + 1, "a single text is wanted here")
    return _Text(str(node.value).strip(), node.start_mark.line + 1)


def _csv_entries(file: Path, content: bytes) -> Iterator[_Entry]:
    rows = read_cells(file.name, content)
    where, header = next(rows)
    if sorted(header) != sorted(("file", *_COLUMNS)):
        got = one_line(", ".join(header), 200)
        raise InputError(f"{where}: the columns must be file, {', '.join(_COLUMNS)}; got {got}")
    for where, row in rows:
        line = int(where.rpartition(" ")[2])
        cells = {column: _Text(value.strip(), line) for column, value in zip(header, row, strict=True)}
        tasks = [cells[column] for column in _COLUMNS if column not in CATEGORIES and cells[column].value]
        yield cells["file"], {tag: cells[tag] for tag in CATEGORIES}, tasks


def _wrong(file: Path, line: int, fault: str) -> InputError:
    return InputError(f"{file.name}, line {line}: {fault}")
