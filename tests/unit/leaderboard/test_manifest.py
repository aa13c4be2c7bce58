"""What a submission says is read strictly; what is wrong is refused quickly, and the sentence names the line."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.errors import InputError
from merton.leaderboard.submissions.archive import pack
from merton.leaderboard.submissions.manifest import (
    MATRIX,
    MAX_ITEMS,
    Manifest,
    canonical,
    dataset_sha256,
    manifest_bytes,
    parse_manifest,
    read_item_scores,
    scores_bytes,
    verify,
)

GOOD: dict[str, Any] = {
    "format": 2,
    "manufacturer": "ACME Robotics",
    "agent": "servo+describe",
    "version": "1.2",
    "weights_sha256": "0" * 64,
    "harness_version": "0.1.0",
    "dataset_sha256": "a" * 64,
}
QUICK_S = 2.0


def yaml(**changes: object) -> bytes:
    """A manifest as YAML, one key a line in the order of `GOOD`; changes are written as they are."""
    written = {key: json.dumps(value) for key, value in GOOD.items()}
    written |= {key: str(value) for key, value in changes.items()}
    return "".join(f"{key}: {value}\n" for key, value in written.items()).encode()


def refused(data: bytes, name: str = "manifest.yaml") -> str:
    started = time.process_time()
    with pytest.raises(InputError) as caught:
        parse_manifest(data, name)
    assert time.process_time() - started < QUICK_S
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_manifest_is_read_from_yaml_and_from_json() -> None:
    expected = Manifest.model_validate(GOOD)
    assert parse_manifest(yaml(), "manifest.yaml") == expected
    for indent in (None, 1, "\t"):
        assert parse_manifest(json.dumps(GOOD, indent=indent).encode(), "manifest.json") == expected
    assert parse_manifest(b"\xef\xbb\xbf" + yaml(), "manifest.yaml") == expected
    assert parse_manifest(manifest_bytes(expected), "manifest.json") == expected
    assert expected.scores == "scores.csv"


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (BOMB.encode(), 2),
        (b"format: 1\nx: &loop [*loop]\n", 2),
        (yaml(agent="!!python/object/apply:os.system [ls]"), 3),
        (yaml(agent="!!binary aGk="), 3),
        (yaml() + b"agent: twice\n", 8),
        (b"format: 1\nagent: " + b"[" * 5000 + b"\n", 2),
        (b"format: 1\nagent:\n" + b"".join(b" " * n + b"- \n" for n in range(1, 90)), 51),
        (b"format: 1\nagent: " + b"9" * 5000 + b"\n", 2),
        (yaml(version="9" * 900), 4),
        (yaml(version=".nan"), 4),
        (yaml(version=".inf"), 4),
        (yaml(version="1.5"), 4),  # a number, not text: 1.10 would be read as 1.1
        (yaml(version="yes\n  - 1"), 4),
        (yaml(format=3), 1),
        (yaml(agent="evil\u202etxt"), 3),
        (yaml(agent='"evil\\u202etxt"'), 3),
        (yaml(agent='"zero\\u200bwidth"'), 3),
        (yaml(manufacturer='"ACME\u034f"'), 2),  # invisible marks and letters would make another ACME
        (yaml(manufacturer='"ACME\ufe0f"'), 2),
        (yaml(manufacturer='"ACME \u3164"'), 2),
        (yaml(manufacturer='"ACME\\uffa0"'), 2),
        (yaml(agent='"x\\U000e0100"'), 3),
        (yaml() + b"# \x00\n", 8),
        (yaml() + b"\xff\xfe\n", 8),
        (yaml(agent='"' + "x" * 900 + '"'), 3),
        (yaml(agent="x" * 10_000), 3),
        (yaml(agent="'=1+1'"), 3),
        (yaml(agent="'+1'"), 3),
        (yaml(agent="'@SUM(A1)'"), 3),
        (yaml(agent="'<script>alert(1)</script>'"), 3),
        (yaml(agent="'a<b'"), 3),
        (yaml(agent="''"), 3),
        (yaml(agent="'a  b'"), 3),
        (yaml(agent="' a'"), 3),
        (yaml(manufacturer="'X) 2 (Y'"), 2),
        (yaml(version="'1 2'"), 4),
        (yaml(weights_sha256="unknown"), 5),
        (yaml(weights_sha256="A" * 64), 5),
        (yaml(dataset_sha256="none"), 7),
        (yaml(scores="../scores.csv"), 8),
        (yaml(contact="'<a@b>'"), 8),
        (yaml(surprise="1"), 8),
        (b"agent: [1, 2\n\n", 3),
        (b"agent: '\n", 2),
        (b"\tagent: x\n", 1),
    ],
    ids=lambda value: f"{len(value)}_bytes" if isinstance(value, bytes) else None,
)
def test_poison_in_yaml_is_refused_with_its_line(data: bytes, line: int) -> None:
    assert refused(data).startswith(f"manifest.yaml, line {line}")


def with_json(old: str, new: str) -> bytes:
    text = json.dumps(GOOD, indent=1)
    assert old in text
    return text.replace(old, new).encode()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (with_json('"1.2"', "NaN"), 5),
        (with_json('"1.2"', "-Infinity"), 5),
        (with_json('"1.2"', "9" * 900), 5),
        (with_json('"1.2"', "1e999"), 5),
        (with_json('"version": "1.2",', '"version": "1.2",\n "version": "1.3",'), 6),
        (with_json('"1.2"', "'1.2'"), 5),
        (with_json('"1.2"', "one"), 5),
        (with_json('"servo', '"=servo'), 4),
        (with_json("{", "{ # comment\n"), 1),
        (b'{"format":\n' + b"[" * 900 + b"]" * 900 + b"}", 2),
        (b'{"format":\n' + b'{"a":' * 150 + b"1" + b"}" * 150 + b"}", 2),
        (b'{"format": 1,\n', 2),
    ],
    ids=lambda value: f"{len(value)}_bytes" if isinstance(value, bytes) else None,
)
def test_poison_in_json_is_refused_with_its_line(data: bytes, line: int) -> None:
    assert refused(data, "manifest.json").startswith(f"manifest.json, line {line}")


@pytest.mark.parametrize("name", ["manifest.yaml", "manifest.json"])
def test_a_missing_key_or_a_foreign_or_long_text_is_named(name: str) -> None:
    assert "mapping" in refused(b"[1, 2]", name)
    assert "mapping" in refused(b"", name)
    assert "larger than" in refused(b"#" * 20_000, name)
    assert "weights_sha256: is missing" in refused(
        json.dumps({key: value for key, value in GOOD.items() if key != "weights_sha256"}).encode(), name
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet=st.sampled_from("&*!{}[]:,-'\"\n |>%@#?a1.\t\\u"), max_size=80), st.integers(0, 150))
def test_a_manifest_with_any_text_is_read_or_refused(text: str, where: int) -> None:
    data = (yaml()[:where].decode() + text + yaml()[where:].decode()).encode()
    for name in ("manifest.yaml", "manifest.json"):
        refused = name
        try:
            assert parse_manifest(data, name).format == 2
        except InputError as error:
            refused = str(error)
        assert refused.startswith(name)


@pytest.mark.parametrize(
    "other", ["acme robotics", " ACME  Robotics ", "ＡＣＭＥ　Robotics", "ACME\tRobotics", "Acme\u00a0Robotics"]
)
def test_spellings_of_one_name_are_one_name(other: str) -> None:
    assert canonical(other) == canonical("ACME Robotics") == "acme robotics"


@given(st.text(max_size=20))
def test_canonical_names_stay_as_they_are(name: str) -> None:
    assert canonical(canonical(name)) == canonical(name)


def test_the_hash_of_a_dataset_is_that_of_its_sorted_items() -> None:
    assert dataset_sha256(["b", "a", "b"]) == hashlib.sha256(b"a\nb\n").hexdigest()
    assert dataset_sha256(["ab"]) != dataset_sha256(["a", "b"])


@given(
    st.dictionaries(st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1), st.floats(0, 1), min_size=1)
)
def test_scores_come_back_to_the_last_bit(scores: dict[str, float]) -> None:
    halves = {item: score / 2.0 for item, score in scores.items()}
    read = read_item_scores(scores_bytes(scores, halves), "scores.csv")
    assert (read.scores, read.executions, read.is_success) == (scores, halves, True)
    assert list(read.places.values()) == [f"scores.csv, line {number}" for number in range(2, len(scores) + 2)]
    assert list(read.places) == sorted(scores)
    assert scores_bytes(dict(reversed(scores.items()))) == scores_bytes(scores)
    matrix = read_item_scores(scores_bytes(scores, columns=MATRIX), "scores.csv", 1)
    assert (matrix.scores, matrix.executions, matrix.is_success) == (scores, {}, False)


def test_only_a_submission_of_the_newer_format_states_success() -> None:
    with pytest.raises(InputError, match="line 1: the columns must be item,score; got 'item,success'"):
        read_item_scores(b"item,success\na,1\n", "scores.csv", 1)
    with pytest.raises(InputError, match="line 3: the score is missing"):
        read_item_scores(b"item,success,execution\na,1,1\nb,0,\n", "scores.csv")


def test_no_item_of_a_submission_is_a_formula_in_a_spreadsheet() -> None:
    assert scores_bytes({"=1+1": 0.5, "a": 1.0}) == b"item,success\n'=1+1,0.5\na,1.0\n"


@pytest.mark.parametrize("score", ["0", "1", "1.0", ".5", "0.5 ", "5e-1", "1.", "1E-300", "0.0000"])
def test_plain_decimal_numbers_are_scores(score: str) -> None:
    assert read_item_scores(f"item,score\r\na,{score}\r\n".encode(), "scores.csv").scores == {"a": float(score)}


BAD_SCORES = ["nan", "NaN", "inf", "-inf", "-0.1", "1.0001", "1e999", "2", "", " ", "0,5", "0_1", "٠.٥", "+1", "0x1",
              "1" * 100, "=1", "true", "None", "½"]  # fmt: skip


@pytest.mark.parametrize("score", BAD_SCORES)
def test_a_score_that_is_no_number_in_range_is_refused_with_its_line(score: str) -> None:
    with pytest.raises(InputError, match=r"^scores\.csv, line 3: ") as caught:
        read_item_scores(f"item,score\nok,0.5\nbad,{score}\nmore,0.5\n".encode(), "scores.csv")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "scores.csv: is empty"),
        ("item,value\na,1\n", "line 1: the columns"),
        ("item,score\n", "line 1: there is no score"),
        ("item,score\na,1\nb,1\na,1\n", "line 4: 'a' stands already in scores.csv, line 2"),
        ("item,score\na\n", "line 2: has 1 cells"),
        ("item,score\n,1\n", "line 2: '' cannot be"),
        ("item,score\nevil\u202e,1\n", "line 2: 'evil"),
        ('item,score\n"two\nlines",1\n', "line 3: "),
        ('item,score\n"open,1\n', "line 2: "),
        ("item,score\n" + "x" * 200_000 + ",1\n", "line 2: "),
        ("item,score\n\0,1\n", "line 2: "),
    ],
    ids=lambda value: str(len(value)),
)
def test_a_broken_table_of_scores_is_refused_with_its_line(table: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read_item_scores(table.encode(), "scores.csv")
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_table_that_is_no_utf8_or_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="line 2: is not UTF-8"):
        read_item_scores(b"item,score\nx\xff,1\n", "scores.csv")
    many = "item,score\n" + "".join(f"{number},1\n" for number in range(MAX_ITEMS + 1))
    with pytest.raises(InputError, match=f"more than {MAX_ITEMS} items"):
        read_item_scores(many.encode(), "scores.csv")


def test_a_submission_may_lie_in_one_folder_and_have_other_files(tmp_path: Path) -> None:
    files = {"mine/manifest.yaml": yaml(), "mine/scores.csv": b"item,score\na,0.5\n", "mine/inner.zip": b"PK\x03\x04"}
    (tmp_path / "a.zip").write_bytes(pack(files))
    submission = verify(tmp_path / "a.zip")
    assert submission.manifest == Manifest.model_validate(GOOD)
    assert submission.scores == {"a": 0.5}
    assert submission.archive_sha256 == hashlib.sha256(pack(files)).hexdigest()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"scores.csv": b""}, "no manifest"),
        ({"a/b/manifest.yaml": yaml()}, "no manifest"),
        ({"manifest.yaml": yaml(), "manifest.json": b"{}"}, "several manifests"),
        ({"a/manifest.yaml": yaml(), "b/manifest.yaml": yaml()}, "several manifests"),
        ({"manifest.yaml": yaml(), "mine/scores.csv": b""}, "no scores.csv beside"),
    ],
)
def test_an_archive_without_one_manifest_and_its_scores_is_refused(
    files: dict[str, bytes], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "a.zip").write_bytes(pack(files))
    with pytest.raises(InputError, match=reason):
        verify(tmp_path / "a.zip")
