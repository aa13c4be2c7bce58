"""The content of a submission: manifest.yaml (agent, version, hashes) and the score of every item (a CSV table)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator

from merton.config import Model, loads
from merton.errors import InputError
from merton.leaderboard.submissions.archive import Source, Unpacked, folded, read
from merton.results.checking import MAX_NAME
from merton.results.csv_writer import csv_text, text_of
from merton.results.tables import read_cells, utf8_text
from merton.results.text import one_line

FORMAT = 2
"""Of a submission that states success. One of format 1 states a single score an item: of trials, execution / 100."""
MANIFESTS = ("manifest.yaml", "manifest.yml", "manifest.json")
MAX_MANIFEST_BYTES = 16_384
MAX_LINE = 1_000
"""Characters in a line; a number of thousands of digits would take long to read."""
MAX_MANIFEST_NAME = 60
SUCCESSES = (("item", "success"), ("item", "success", "execution"))
"""Columns of the scores of trials."""
MATRIX = ("item", "score")
"""Columns of the scores of an imported matrix, and of every submission of format 1."""
MAX_ITEMS = 200_000
NO_WEIGHTS = "none"
"""Stands for the hash of an agent that has no weights, such as a scripted one."""

Document = TypeVar("Document")

_SCORE = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_JSON_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NOT_JSON = re.compile(r"NaN|Infinity")
_HASH = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_IN_NAMES = " ._-+&,'/:@"
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Invisible letters and marks (Unicode's Default_Ignorable_Code_Point); the others of these are not letters."""


def _name(text: str) -> str:
    """Names end up in foreign tables, pages and files, so formulas, tags and hidden characters are refused."""
    if not 1 <= len(text) <= MAX_MANIFEST_NAME:
        raise ValueError(f"must have 1 to {MAX_MANIFEST_NAME} characters, got {len(text)}")
    strange = (
        c for c in text if _INVISIBLE.match(c) or (unicodedata.category(c)[0] not in "LMN" and c not in _IN_NAMES)
    )
    wrong = next(strange, None)
    if wrong or not text[0].isalnum() or text != " ".join(text.split()):
        found = f", not {_code_point(wrong)}" if wrong else ""
        raise ValueError(
            "must begin with a letter or digit and have only letters, digits, single spaces and "
            f"{_IN_NAMES.strip()}{found}"
        )
    return text


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError("must have 1 to 40 of the characters A-Z a-z 0-9 . _ + -, the first a letter or digit")
    return text


def _hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ValueError("must be a SHA-256: 64 of the characters 0-9 a-f")
    return text


def _weights(text: str) -> str:
    return text if text == NO_WEIGHTS else _hash(text)


def _contact(text: str) -> str:
    if not 3 <= len(text) <= 200 or not text.isprintable() or set(text) & set("<>\"'`") or not text[0].isalnum():
        raise ValueError("must be an address of 3 to 200 characters, such as lab@example.org")
    return text


def _file_name(text: str) -> str:
    if not _FILE_NAME.fullmatch(text):
        raise ValueError("must be the name of a file beside the manifest, such as scores.csv")
    return text


Name = Annotated[str, AfterValidator(_name)]
Version = Annotated[str, AfterValidator(_version)]
Contact = Annotated[str, AfterValidator(_contact)]


class Manifest(Model):
    """The manifest of a submission.

    Attributes:
        format: of the submission; 2, or 1 of one that states execution in place of success.
        manufacturer: the sender. Compared as `canonical` says.
        agent, version: as measured. A newer version of an agent replaces the older one on the board.
        contact: where the manufacturer can be reached; not shown on the board.
        weights_sha256: of the weights that were measured; "none" if the agent has none.
        harness_version: of the Merton that measured.
        dataset_sha256: of the items that were asked; see `dataset_sha256`.
        scores: name of the CSV file beside the manifest, with a column of items and `SUCCESSES` or `MATRIX` (0..1).
    """

    format: Literal[1, 2]
    manufacturer: Name
    agent: Name
    version: Version
    contact: Contact | None = None
    weights_sha256: Annotated[str, AfterValidator(_weights)]
    harness_version: Version
    dataset_sha256: Annotated[str, AfterValidator(_hash)]
    scores: Annotated[str, AfterValidator(_file_name)] = "scores.csv"


@dataclass(frozen=True)
class ItemScores:
    """The table of scores of a submission.

    Attributes:
        scores: item to success or score, 0..1, as in the file.
        executions: item to execution score / 100, 0..1, of every item; empty if the table has none.
        places: item to where it stands, such as "scores.csv, line 2", in the order of the file.
        is_success: whether `scores` are successes.
    """

    scores: Mapping[str, float]
    executions: Mapping[str, float]
    places: Mapping[str, str]
    is_success: bool


@dataclass(frozen=True)
class Submission:
    """A submission that was read and passes all checks that need no record.

    Attributes:
        table: its scores.
        archive_sha256: of the bytes that were sent.
    """

    manifest: Manifest
    table: ItemScores
    archive_sha256: str

    @property
    def scores(self) -> Mapping[str, float]:
        """Item to success or score, 0..1."""
        return self.table.scores


def checked_manufacturer(name: str) -> str:
    """The name, unchanged; raises InputError if a manifest may not contain it."""
    try:
        return _name(name)
    except ValueError as error:
        raise InputError(f"the manufacturer {one_line(name)!r} {error}") from None


def canonical(name: str) -> str:
    """A key that is equal for all spellings of one name: Unicode NFKC, no case, single spaces; "ACME " is "acme"."""
    return " ".join(folded(name).split())


def confusable_key(name: str) -> str:
    """A key that is equal for names that look alike, in any script, by Unicode's confusable characters.

    By UTS 39, section 4, with case folded as in `canonical`: Cyrillic "\u0410\u0421\u041c\u0415" looks like "acme".
    """
    letters = unicodedata.normalize("NFKD", name)
    return canonical("".join(_stand_in(letter) for letter in letters))


def dataset_sha256(items: Iterable[str]) -> str:
    """The hash of a dataset: of the ids of all its items, sorted by code point, each followed by a line feed."""
    return sha256("".join(f"{item}\n" for item in sorted(set(items))).encode()).hexdigest()


def verify(source: Source) -> Submission:
    """Read a submission and make all checks that do not need the record it is for.

    Raises:
        TooLargeError, InputError: as `archive.read`; or the manifest or the scores are invalid. The sentence names file
            and line.
    """
    return read_submission(read(source))


def read_submission(unpacked: Unpacked) -> Submission:
    """The submission in an archive's files; raises as `verify` does."""
    manifest, folder = read_manifest(unpacked.files)
    name = folder + manifest.scores
    if name not in unpacked.files:
        raise InputError(f"there is no {manifest.scores} beside the manifest, which names it as the file of scores")
    return Submission(
        manifest, read_item_scores(unpacked.files[name], manifest.scores, manifest.format), unpacked.sha256
    )


def read_manifest(files: Mapping[str, bytes]) -> tuple[Manifest, str]:
    """The manifest, and the folder it is in ("" or "mine/"): at the top, or in the one folder at the top."""
    found = [name for name in sorted(files) if name.count("/") <= 1 and name.rpartition("/")[2] in MANIFESTS]
    top = [name for name in found if "/" not in name] or found
    if len(top) != 1:
        many = f"several manifests: {', '.join(top[:3])}" if top else "no manifest"
        raise InputError(f"the archive has {many}; it needs one {MANIFESTS[0]} or {MANIFESTS[2]}")
    folder, _, name = top[0].rpartition("/")
    return parse_manifest(files[top[0]], name), f"{folder}/" if folder else ""


def parse_manifest(data: bytes, name: str) -> Manifest:
    """A manifest's text, YAML or (if `name` says so) JSON.

    Raises:
        InputError: longer than `MAX_MANIFEST_BYTES`, not UTF-8, hidden characters, anchors, tags, a duplicate or
            unknown key, or a value that is not as `Manifest` says; the sentence names the line.
    """
    return parse_document(data, name, MAX_MANIFEST_BYTES, lambda text: loads(text, Manifest, name))


def parse_document(data: bytes, name: str, longest: int, read: Callable[[str], Document]) -> Document:
    """A small document of a stranger, YAML or (if `name` says so) JSON.

    Args:
        longest: in bytes.
        read: makes it of the text, and refuses what `merton.config.loads` refuses.

    Raises:
        InputError: longer, not UTF-8, hidden characters, a long line, no JSON although it should be, or what `read`
            refuses; the sentence names the line.
    """
    if len(data) > longest:
        raise InputError(f"{name}: larger than {longest} bytes")
    text = utf8_text(name, data)
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        hidden = next((c for c in line if not c.isprintable() and c not in "\t\r"), None)
        if hidden:
            raise InputError(f"{name}, line {number}: the hidden character {_code_point(hidden)} is not allowed")
        if len(line) > MAX_LINE:
            raise InputError(f"{name}, line {number}: longer than {MAX_LINE} characters")
    if not name.endswith(".json"):
        return read(text)
    found = read(text.replace("\t", " "))  # JSON is YAML, which knows the line of every key
    for number, line in enumerate(lines, 1):
        if number_name := _NOT_JSON.search(_JSON_STRING.sub('""', line)):
            raise InputError(f"{name}, line {number}: {number_name[0]} is not JSON")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}, line {error.lineno}: not JSON: {error.msg}") from None
    return found


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as JSON, one key a line."""
    plain: dict[str, Any] = manifest.model_dump(exclude_none=True)
    return (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()


def scores_bytes(
    scores: Mapping[str, float], executions: Mapping[str, float] | None = None, columns: Sequence[str] = SUCCESSES[0]
) -> bytes:
    """The table of scores, sorted by item; `read_item_scores` gives the same names, and numbers to the last bit.

    Args:
        scores: item to success, or by `MATRIX` to score, 0..1.
        executions: item to execution score / 100, 0..1, of the same items; without them the table has no such column.
        columns: of the table without executions.
    """
    if executions:
        rows = [(item, float(scores[item]), float(executions[item])) for item in sorted(scores)]
        return csv_text(SUCCESSES[1], rows).encode()
    return csv_text(columns, ((item, float(scores[item])) for item in sorted(scores))).encode()


def read_item_scores(data: bytes, name: str, format: int = FORMAT) -> ItemScores:
    """The scores of each item of a CSV table, whose columns are `MATRIX` or, by format 2, one of `SUCCESSES`.

    Raises:
        InputError: the header is another; an item's id is not a printable text of at most `MAX_NAME` characters; a
            score is missing, not a plain decimal number or outside 0..1; an item stands twice; there is none, or more
            than `MAX_ITEMS`. The sentence names the line.
    """
    scores: dict[str, float] = {}
    executions: dict[str, float] = {}
    places: dict[str, str] = {}
    rows = read_cells(name, data)
    where, header = next(rows)
    allowed = (*SUCCESSES, MATRIX) if format >= FORMAT else (MATRIX,)
    if tuple(header) not in allowed:
        choices = " or ".join(",".join(columns) for columns in allowed)
        raise InputError(f"{where}: the columns must be {choices}; got {one_line(','.join(header))!r}")
    for where, (written, cell, *beside) in rows:
        item = text_of(written)
        if not item or not item.isprintable() or len(item) > MAX_NAME:
            raise InputError(f"{where}: {one_line(item)!r} cannot be the id of an item")
        if item in places:
            raise InputError(f"{where}: {one_line(item)!r} stands already in {places[item]}")
        scores[item], places[item] = _score(cell, where), where
        if beside:
            executions[item] = _score(beside[0], where)
        if len(scores) > MAX_ITEMS:
            raise InputError(f"{where}: more than {MAX_ITEMS} items")
    if not scores:
        raise InputError(f"{name}, line 1: there is no score in it")
    return ItemScores(scores, executions, places, tuple(header) in SUCCESSES)


def _score(cell: str, where: str) -> float:
    text = cell.strip()
    if not text:
        raise InputError(f"{where}: the score is missing")
    # Stricter than float(), which takes nan, 1_0 and digits of any script.
    if len(text) > 40 or not _SCORE.fullmatch(text) or not 0.0 <= float(text) <= 1.0:
        raise InputError(f"{where}: a score is a decimal number in 0 .. 1, got {one_line(text, 40)!r}")
    return float(text)


@cache
def _stand_in(character: str) -> str:
    """The same text, of one character or more, for all characters that look alike."""
    from confusable_homoglyphs.confusables import confusables_data

    alike = {character, *(other["c"] for other in confusables_data.get(character, ()))}
    alike |= {other["c"] for one in tuple(alike) for other in confusables_data.get(one, ())}
    return str(min(alike))


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character')}"
