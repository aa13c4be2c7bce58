"""The documents agree with the code: links have targets, and no name is missing."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

from merton.cli.main import COMMANDS, app
from merton.cli.tree import RENAMED, STUDIES
from merton.cognition.models.base import MODELS
from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode
from merton.execution.gate.safety import Limits
from merton.graph.spec import graph_names
from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS, TEMPORAL_FAULTS
from merton.registry import Registry
from merton.world.tasks import TASKS

ROOT = Path(__file__).parents[3]
NODES = ROOT / "src" / "merton_nodes" / "merton_nodes"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "docker" / "README.md"]
INTERFACES = (ROOT / "docs" / "reference" / "interfaces.md").read_text(encoding="utf-8")
SAFETY = (ROOT / "docs" / "lab" / "safety.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

LINK = re.compile(r"\]\(([^)\s]+)\)")
PARAMETER = re.compile(r"(?:self|node)\.parameter\(\s*f?\"([^\"]+)\"")


def in_code(text: str) -> set[str]:
    """All text in backticks of a document."""
    return set(re.findall(r"`([^`\n]+)`", text))


def anchors(document: Path) -> set[str]:
    """The headings of a document, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def declared_names() -> set[str]:
    """Topics, services and actions of names.py that some node uses; <camera> stands for a camera's name."""
    source = (NODES / "ros" / "names.py").read_text(encoding="utf-8")
    elsewhere = "".join(file.read_text(encoding="utf-8") for file in NODES.rglob("*.py") if file.name != "names.py")
    constants = dict(re.findall(r"^([A-Z_]+) = \"([^\"]+)\"$", source, re.MULTILINE))
    streams = re.findall(r"return f\"((?:camera|distorted)/[^\"]+)\"", source)
    used = {value for name, value in constants.items() if re.search(rf"\bnames\.{name}\b", elsewhere)}
    return used | {stream.replace("{camera}", "<camera>") for stream in streams}


def declared_parameters() -> list[tuple[str, str]]:
    """(node, parameter) of every parameter the nodes declare."""
    found = []
    for file in sorted(NODES.rglob("*.py")):
        for parameter in PARAMETER.findall(file.read_text(encoding="utf-8")):
            found.append((file.stem, re.sub(r"\{.*\}", "*", parameter)))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_have_targets(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / unquote(path)).resolve() if path else document
        assert target.exists(), f"{document.name} links to {link}"
        assert target.is_relative_to(ROOT), f"{document.name} links out of the checkout: {link}"
        assert not anchor or anchor in anchors(target), f"{document.name} links to {link}"


def test_commands_in_documents_exist() -> None:
    commands = {name for _, name, _, _ in COMMANDS} | {name.split()[0] for name in STUDIES}
    wrong = [
        f"{document.relative_to(ROOT)}: merton {word}"
        for document in DOCUMENTS
        for code in in_code(document.read_text(encoding="utf-8"))
        for word in re.findall(r"^merton ([a-z]+)", code)
        if word not in commands | (set(RENAMED) if document.name == "CHANGELOG.md" else set())
    ]
    assert wrong == []


def test_every_document_can_be_found_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        reached.add(document)
        for link in LINK.findall(document.read_text(encoding="utf-8")):
            target = (document.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                waiting.append(target)
    assert set((ROOT / "docs").rglob("*.md")) <= reached


def test_every_name_is_documented() -> None:
    names = declared_names()
    assert {"vla/predict", "arm/stop", "camera/<camera>/color/image_raw", "distorted/<camera>/info"} <= names
    served = {
        name
        for name in names
        if name not in ("base_link", "camera_node", "distortion_node", "quality_node", "arm_node")
    }
    assert served <= in_code(INTERFACES), served - in_code(INTERFACES)


def test_queue_depths_are_those_of_the_nodes() -> None:
    source = (NODES / "ros" / "names.py").read_text(encoding="utf-8")
    depths = dict(re.findall(r"^(\w+)_QOS = _profile\(.*, (\d+)\)$", source, re.MULTILINE))
    for name in ("SENSOR", "RELIABLE", "JOINTS", "LATCHED"):
        assert re.search(rf"\*\*{name.lower()}\*\* is [^;:]*keep last {depths[name]}\b", INTERFACES), name


def test_every_parameter_is_documented() -> None:
    section = INTERFACES.split("\n## Parameters\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`[^|]+`) \|", section, re.MULTILINE)
    documented = {(node, parameter) for node, cell in rows for parameter in in_code(cell)}
    shared = {
        "runtime": ("all",),
        "model_node": ("vlm_node", "vla_node"),
        "camera_watch": ("arm_node",),
        "chunk_runner": ("arm_node",),
        "image_gate": ("arm_node",),
        "declared_cell": ("arm_node", "camera_node", "experiment_node", "gazebo_cell_node", "mujoco_cell_node"),
    }
    declared = {(node, name) for file, name in declared_parameters() for node in shared.get(file, (file,))}
    assert ("all", "autostart") in declared
    assert ("arm_node", "limits.*") in declared
    assert declared - documented == set(), "declared, not documented"
    assert documented - declared == set(), "documented, not declared"


def test_every_limit_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", SAFETY, re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == {f.name: f.default for f in fields(Limits)}


def test_the_table_of_error_codes_is_the_enumeration() -> None:
    rows = re.findall(r"^\| (\d{3}) \| ([A-Z_]+) \| [^|]+ \| ([^|]+) \|$", INTERFACES, re.MULTILINE)
    assert rows == [(str(int(code)), code.name, code.meaning) for code in ErrorCode if code is not ErrorCode.OK]


def test_merton_errors_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    app(["errors"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [[str(int(c)), c.name, c.meaning] for c in ErrorCode]


def test_nodes_answer_with_named_error_codes() -> None:
    for file in NODES.rglob("*.py"):
        assert not re.search(r"error_code[^=\n]*= \d", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("registry", [TASKS, DISTORTIONS, POLICIES, MODELS], ids=lambda registry: registry.kind)
def test_every_registered_name_is_documented(registry: Registry[Any]) -> None:
    named = in_code(INTERFACES) | in_code((ROOT / "docs" / "use" / "models.md").read_text(encoding="utf-8"))
    assert set(registry) <= named, set(registry) - named


def test_distortions_stand_in_the_row_of_their_family() -> None:
    rows = {row[0]: in_code(row[1]) for row in re.findall(r"^\| ([\w ]+) \| (.+) \|$", INTERFACES, re.MULTILINE)}
    for name, entry in DISTORTIONS.items():
        assert name in rows[entry.category], f"{name} is not in the row {entry.category!r}"


def test_the_table_of_distortions_is_the_registry() -> None:
    """To renew the table, paste the lines that this test wants."""
    table = (ROOT / "docs" / "use" / "distortions.md").read_text(encoding="utf-8")
    rows = [
        f"| {entry.id} | `{name}` | {entry.category} | {' '.join(f'{value:g}' for value in entry.levels)} "
        f"| {entry.unit} | {'yes' if entry.continuous else 'no'} | {entry.source} |"
        for name, entry in DISTORTIONS.items()
    ]
    assert "\n".join(rows) in table
    assert len(rows) == 30
    assert (ROOT / "docs/images/distortions.jpg").stat().st_size < 400_000


def test_the_tables_of_faults_are_the_registries() -> None:
    """To renew a table, paste the lines that this test wants."""
    text = (ROOT / "docs" / "use" / "distortions.md").read_text(encoding="utf-8")
    for registry in (DEPTH_FAULTS, TEMPORAL_FAULTS):
        rows = [
            f"| `{name}` | {' '.join(f'{value:g}' for value in entry.levels)} | {entry.unit} | {entry.description} |"
            for name, entry in registry.items()
        ]
        assert "\n".join(rows) in text
        assert set(registry) <= in_code(INTERFACES)


def test_the_readme_is_short_and_its_lines_can_be_read() -> None:
    assert README.count("\n") <= 125
    documents = [ROOT / "README.md", *(ROOT / "docs" / "use" / "tutorials").glob("*.md")]
    long = [(file.name, line) for file in documents for line in file.read_text("utf-8").splitlines() if len(line) > 200]
    assert long == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_row_of_a_table_is_wider_than_a_screen(document: Path) -> None:
    """A longer row belongs into a list, or its second fact under the table."""
    rows = [line for line in document.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("|")]
    assert [row for row in rows if len(row) > 160] == []


def test_every_graph_is_documented() -> None:
    assert set(graph_names()) <= in_code(INTERFACES)


def test_the_readme_opens_with_the_film_and_the_report() -> None:
    assert re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)[:2] == ["docs/images/trial.webp", "docs/images/report.jpg"]
    with Image.open(ROOT / "docs/images/trial.webp") as film:
        assert film.n_frames > 40
    assert (ROOT / "docs/images/trial.webp").stat().st_size < 1_500_000
    assert (ROOT / "docs/images/report.jpg").stat().st_size < 300_000
