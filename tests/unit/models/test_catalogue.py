"""The catalogue: every model of the paper, errors with file and line, a lab's own entries, and `merton model`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.cli.models import as_yaml, conventions_table, tables
from merton.cognition.models.base import ADAPTERS as VLM_ADAPTERS
from merton.cognition.models.base import MODELS, Answer, ModelEntry, Question, VisionLanguageModel
from merton.config import loads
from merton.decision.models.base import ADAPTERS as VLA_ADAPTERS
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.models.conventions import CONVENTIONS
from merton.errors import InputError, InvalidActionError, MissingDependencyError, UnknownNameError
from merton.experiment.plan import ExperimentSpec
from merton.models.base import Finding
from merton.models.catalogue import VARIABLE, Catalogue, CatalogueEntry, examine
from merton.models.checkpoints import locate, missing_weights, revision_of

ROOT = Path(__file__).parents[3]
PAPERS_VLMS = (
    "Mini-InternVL, InternLM-Xcomposer2, InternLM-Xcomposer2.5, InternVL2, InternVL2.5, InternVL3, MPlugOwl3, "
    "Ovis1.5-Gemma, Ovis1.6-Llama, Ovis2, Phi3-Vision, Phi3.5-Vision, Phi4-Multimodal, Qwen2-VL, Qwen2.5-VL"
)
"""Embodied-IQA, section 3.3, in its order."""
PAPERS_VLAS = (
    "CogACT, Embodied-CoT, Octo, OpenVLA, OpenVLA-Libero, OpenVLA-Goal, OpenVLA-Libero-Object, "
    "OpenVLA-Libero-Spatial, Pi0-Aloha-Pen, Pi0-Aloha-Towel, Pi0-Aloha-Tupperware, Pi0-Base, Pi0-Droid, Pi0-Fast, "
    "RT-X-1"
)
"""Section 3.4, in its order."""
ENTRIES: list[CatalogueEntry] = [*MODELS.values(), *POLICIES.values()]
PAPERS = [entry for entry in ENTRIES if entry.paper]


class Parrot(VisionLanguageModel):
    """A lab's own model.

    Args:
        word: what it says.
    """

    name = "parrot"

    def __init__(self, word: str = "polly") -> None:
        self.word = word

    def answer(self, images: object, question: str, max_tokens: int = 32) -> Answer:
        """Always the same."""
        return Answer(self.word)


class Torn(Parrot):
    """A lab's own model with a mistake in its check."""

    def check(self) -> Iterator[Finding]:
        """Fails."""
        raise KeyError("beak")


# What is there --------------------------------------------------------------------------------------------------------


def test_the_papers_models_are_there_in_its_order() -> None:
    assert ", ".join(entry.paper for entry in MODELS.values() if entry.paper) == PAPERS_VLMS
    assert ", ".join(entry.paper for entry in POLICIES.values() if entry.paper) == PAPERS_VLAS


@pytest.mark.parametrize("entry", PAPERS, ids=lambda entry: entry.name)
def test_an_entry_has_all_required_fields(entry: CatalogueEntry) -> None:
    assert entry.checkpoint
    assert entry.licence
    assert entry.source.startswith("https://")
    assert entry.memory_gb > 0
    assert entry.verified
    assert entry.unverified
    assert entry.revision == "" or (len(entry.revision) == 40 and set(entry.revision) <= set("0123456789abcdef"))
    if isinstance(entry, PolicyEntry):
        assert entry.convention in CONVENTIONS
        assert entry.cameras


def test_the_tests_named_in_entries_exist() -> None:
    for entry in ENTRIES:
        for word in entry.verified.replace("(", " ").replace(")", " ").split():
            if word.startswith("tests/"):
                assert (ROOT / word.rstrip(",;")).exists(), f"{entry.name}: {word}"
        if not entry.checkpoint:
            assert (ROOT / entry.source).exists()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_builds_without_weights_and_ships_an_example(entry: CatalogueEntry) -> None:
    """Building loads nothing heavy; only an extra that is not installed may be missing."""
    assert entry.adapter in {**VLM_ADAPTERS, **VLA_ADAPTERS}
    try:
        model = entry.build()  # type: ignore[attr-defined]
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert model.name == entry.name
    example = model.make_example()
    if isinstance(entry, PolicyEntry):
        assert set(example.views) == set(entry.cameras) == set(model.cameras)
        knows = example.scene is not None or (entry.name == "expert" and example.expert is not None)
        assert model.needs_scene == entry.needs_scene == knows
    else:
        assert isinstance(example, Question)


def test_joint_space_models_are_six_and_have_an_arm() -> None:
    joints = [entry for entry in POLICIES.values() if entry.convention and CONVENTIONS[entry.convention].arm]
    assert len([entry for entry in joints if entry.paper]) == 6
    assert all(entry.state == "joints" for entry in joints)


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Catalogue[ModelEntry]]:
    """Reads the catalogue of VLMs anew with a lab's file of this text beside Merton's own."""

    def read(text: str) -> Catalogue[ModelEntry]:
        path = tmp_path / "lab.yaml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(VARIABLE, str(path))
        fresh: Catalogue[ModelEntry] = Catalogue("vlm", ModelEntry)
        fresh.read()
        return fresh

    return read


def test_a_lab_adds_a_model_by_an_entry(lab: Callable[[str], Catalogue[ModelEntry]]) -> None:
    models = lab(
        "vlm:\n  - name: ours\n    description: a parrot\n    adapter: test_catalogue:Parrot\n"
        "    settings: {word: hello}\n  - {name: describe, description: theirs, adapter: test_catalogue:Parrot}\n"
        "vla:\n  - {what: is not checked here}\n"
    )
    assert len(models) == len(MODELS) + 1
    example = models["ours"].build().make_example()
    assert models["ours"].build().answer(example.images, example.text).text == "hello"
    assert models["describe"].description == "theirs", "a later entry replaces an earlier one"
    assert [finding.subject for finding in examine(models["ours"])] == ["adapter", "example"]


def test_a_module_beside_the_file_is_found_but_hides_no_other(
    lab: Callable[[str], Catalogue[ModelEntry]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "cockatoo_of_the_lab.py").write_text(
        "from test_catalogue import Parrot as Cockatoo\n", encoding="utf-8"
    )
    (tmp_path / "json.py").write_text("raise ImportError('this hides the real one')\n", encoding="utf-8")
    models = lab("vlm:\n  - {name: ours, description: b, adapter: 'cockatoo_of_the_lab:Cockatoo'}\n")
    assert models["ours"].build().answer([], "who?").text == "polly"
    assert sys.path[-1] == str(tmp_path.resolve())
    assert sys.path.count(str(tmp_path.resolve())) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "vlm:\n  - name: a\n    description: b\n    adapter: c\n    license: d\n",
            r"line 5: vlm, entry 1, license: .*did you mean 'licence'",
        ),
        ("vlm:\n  - name: a\n    description: b\n", r"line 2: vlm, entry 1, adapter: is missing"),
        ("vlm:\n  - {name: A b, description: b, adapter: c}\n", r"line 2: vlm, entry 1, name: must be lower-case"),
        (
            "vlm:\n  - {name: a, description: b, adapter: c, prompt: hello}\n",
            r"line 2: vlm, entry 1, prompt: .*\{question\}",
        ),
        ("vlm:\n  - {name: a, description: b, adapter: c, checkpoint: d/e}\n", r"line 2: .*revision"),
        (
            "vlm:\n  - name: a\n    description: b\n    adapter: c\n    checkpoint: d/e\n    unpinned: new\n"
            "    remote_code: true\n",
            r"line 2: .*pinned revision",
        ),
        (
            "vlm:\n  - {name: a, description: b, adapter: c}\n  - {name: a, description: b, adapter: c}\n",
            r"line 1: vlm: 'a' is there twice",
        ),
        ("models: []\n", r"line 1: models: unknown key; .*vlm"),
    ],
)
def test_an_error_names_file_and_line(lab: Callable[[str], Catalogue[ModelEntry]], text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=r"lab\.yaml, " + complaint):
        lab(text)


def test_a_policys_convention_has_to_be_known() -> None:
    with pytest.raises(ValueError, match=r"unknown convention 'metric'; choose one of: .*bridge, "):
        PolicyEntry(name="a", description="b", adapter="c", convention="metric")


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone.yaml"))
    says = r"^cannot read .*gone\.yaml, which MERTON_CATALOGUE names: there is no such file$"
    with pytest.raises(InputError, match=says):
        len(Catalogue("vlm", ModelEntry))


def test_an_experiment_is_not_blamed_for_a_file_of_the_catalogue(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check of an experiment's names reads the catalogue: its mistakes had the experiment's file and line."""
    for one in (MODELS, POLICIES):
        monkeypatch.setattr(one, "_read", False)
        monkeypatch.setattr(one, "_entries", {})
    text = "name: t\nagents: [{id: a, vla: hold}]\ntasks: [reach]\n"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone.yaml"))
    with pytest.raises(InputError, match=r"^cannot read .*gone\.yaml"):
        loads(text, ExperimentSpec, "mine.yaml")
    (tmp_path / "torn.yaml").write_text("vla:\n  - {name: a}\n")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "torn.yaml"))
    with pytest.raises(InputError, match=r"^[^,]*torn\.yaml, line 2: .*is missing"):
        loads(text, ExperimentSpec, "mine.yaml")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InputError, match=r"^mine\.yaml, line 2: agents, entry 1, vla: unknown vla 'hald'"):
        loads(text.replace("hold", "hald"), ExperimentSpec, "mine.yaml")


@pytest.mark.parametrize(
    ("adapter", "settings", "complaint"),
    [
        ("test_catalogue:Macaw", {}, "no class 'Macaw' in 'test_catalogue'"),
        (
            "no_such_module:Parrot",
            {},
            "no module 'no_such_module' .*beside the catalogue file, or in a folder of PYTHONPATH",
        ),
        ("parrot", {}, "unknown adapter 'parrot'; choose one of: .*transformers.*or name a class"),
        ("torn:Parrot", {}, r"'torn' cannot be imported: SyntaxError: .*torn.py, line 1"),
        ("asks_too_much:Parrot", {}, r"'asks_too_much' cannot be imported: ImportError: .*asks_too_much.py, line 1"),
        ("test_catalogue:Parrot", {"colour": "red"}, "refuses its settings: .*colour"),
    ],
)
def test_an_adapter_that_cannot_be_built(
    adapter: str, settings: dict[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "torn.py").write_text("def parrot(:\n")
    (tmp_path / "asks_too_much.py").write_text("from merton.models.catalogue import Cage\n")
    entry = ModelEntry(name="ours", description="", adapter=adapter, settings=settings)
    with pytest.raises(InputError, match=f"ours: .*({complaint})"):
        entry.build()
    assert [finding.ok for finding in examine(entry)] == [False]


def test_a_missing_package_of_a_labs_adapter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_more.py").write_text("import no_such_framework\n")
    entry = ModelEntry(name="ours", description="", adapter="needs_more:Parrot")
    with pytest.raises(MissingDependencyError, match="ours needs no_such_framework, which its adapter 'needs_more:"):
        entry.build()


def test_a_model_whose_code_fails_is_a_finding_with_its_place() -> None:
    entry = ModelEntry(name="ours", description="", adapter="test_catalogue:Torn")
    adapter, model = examine(entry)
    assert adapter.ok
    assert not model.ok
    assert re.fullmatch(r"its code failed: KeyError: 'beak' \(.*test_catalogue.py, line \d+\)", model.detail)


def test_unknown_names_are_answered_with_the_choices() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown vlm 'gpt'; choose one of: describe, "):
        MODELS["gpt"]


# Contract -------------------------------------------------------------------------------------------------------------


def test_batches_have_a_default() -> None:
    question = MODELS["describe"].build().make_example()
    answers = MODELS["describe"].build().answer_batch([question, question])
    assert answers[0].text == answers[1].text != ""
    hold = POLICIES["hold"].build()
    chunks = hold.act_batch([hold.make_example()] * 2)
    assert [type(chunk).__name__ for chunk in chunks] == ["ActionChunk"] * 2


def test_one_invalid_action_leaves_the_rest_of_a_batch_alone() -> None:
    servo = POLICIES["servo"].build()
    good = servo.make_example()

    class Sometimes(type(servo)):  # type: ignore[misc]
        def act(self, observation: object) -> object:
            if observation is good:
                return super().act(observation)
            raise InvalidActionError("nan")

    results = Sometimes().act_batch([good, servo.make_example(), good])
    assert [isinstance(result, InvalidActionError) for result in results] == [False, True, False]


# Checkpoints ----------------------------------------------------------------------------------------------------------


def test_checkpoints_are_found_in_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the layout of huggingface_hub; nothing is downloaded."""
    hub = pytest.importorskip("huggingface_hub")
    commit = "a" * 40
    snapshot = tmp_path / "models--lab--model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (tmp_path / "models--lab--model" / "refs").mkdir()
    (tmp_path / "models--lab--model" / "refs" / "main").write_text(commit, encoding="utf-8")
    real = hub.snapshot_download
    monkeypatch.setattr(hub, "snapshot_download", lambda *a, **k: real(*a, cache_dir=tmp_path, **k))
    assert locate("lab/model") == locate("lab/model", commit) == snapshot
    assert revision_of(snapshot) == commit
    assert missing_weights(snapshot) == ["the weights"]
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (snapshot / "model-1.safetensors").touch()
    assert missing_weights(snapshot) == ["model-2.safetensors"]
    with pytest.raises(MissingDependencyError, match=f"hf download lab/model --revision {'b' * 40}"):
        locate("lab/model", "b" * 40)
    assert locate(str(tmp_path)) == tmp_path
    assert revision_of(tmp_path) == ""


# The command ----------------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["model", *words])
    return result.exit_code, result.output


def test_list_has_every_model() -> None:
    code, output = run("list", "--json")
    listed = json.loads(output)
    assert code == 0
    assert [(row["kind"], row["name"]) for row in listed] == [
        *(("vlm", name) for name in MODELS),
        *(("vla", name) for name in POLICIES),
    ]
    assert run("list")[0] == 0


def test_the_list_has_a_line_per_model_and_is_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merton.cli.models.STDOUT.width", 100)
    lines = run("list")[1].splitlines()
    assert {line.split()[1] for line in lines[1:] if line.startswith("vl")} == {*MODELS, *POLICIES}
    assert max(map(len, lines)) <= 100
    pi0 = [line.split()[1] for line in run("list", "VLA", "pi0")[1].splitlines()[1:] if line.startswith("vl")]
    assert {"pi0-droid"} <= set(pi0) < set(POLICIES)
    assert "needs server" in next(line for line in lines if " pi0-droid " in line)
    usable = [line.split() for line in run("list", "--usable")[1].splitlines()[1:] if line.startswith("vl")]
    assert {"describe", "servo"} <= {words[1] for words in usable}
    assert {words[2] for words in usable} == {"yes"}
    assert "pi0-droid" not in {words[1] for words in usable}
    unknown = CliRunner().invoke(app, ["model", "list", "vla", "moon"]).exception
    assert isinstance(unknown, InputError)
    assert str(unknown) == "no model has 'vla' and 'moon' in its name or description"


def test_show_prints_an_entry() -> None:
    code, output = run("show", "pi0-droid")
    assert code == 0
    assert "convention: droid" in output
    entries = [("vlm" if isinstance(entry, ModelEntry) else "vla", entry) for entry in ENTRIES]
    copies = as_yaml(entries)  # what `show` prints is an entry that says the same
    assert [*loads(copies, MODELS.file_model).vlm, *loads(copies, POLICIES.file_model).vla] == ENTRIES
    assert CliRunner().invoke(app, ["model", "show", "gpt"]).exception.args == (
        UnknownNameError("model", "gpt", [entry.name for entry in ENTRIES]).args
    )


@pytest.mark.parametrize("name", ["describe", "oracle", "servo", "hold", "plunge"])
def test_models_that_come_with_merton_are_ready(name: str) -> None:
    code, output = run("check", name)
    assert code == 0
    assert "ok      example" in output


def test_check_names_missing_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path), raising=False)
    code, output = run("check", "internvl3")
    assert code == 1
    assert "hf download OpenGVLab/InternVL3-8B-hf --revision 259a3b6" in output or "merton[models]" in output


def test_check_names_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> object:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("merton.models.catalogue.import_module", missing)
    code, output = run("check", "internvl3")
    assert code == 1
    assert re.search(r"internvl3 needs torch: install it with \S+ -m pip .* 'merton\[models\]==[\d.]+'", output)


# Documents ------------------------------------------------------------------------------------------------------------


def test_the_tables_of_the_documents_are_the_catalogue() -> None:
    """To renew them: merton model list --markdown."""
    page = (ROOT / "docs" / "use" / "models.md").read_text(encoding="utf-8")
    assert tables() in page
    assert conventions_table() in page


def test_the_examples_of_the_documents_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes and entries of adding_a_model.md, as a lab would copy them."""
    blocks = re.findall(
        r"```(python|yaml)\n(.*?)```", (ROOT / "docs/use/adding_a_model.md").read_text(encoding="utf-8"), re.DOTALL
    )
    sources = [text for kind, text in blocks if kind == "python"]
    for name, source in zip(("wander", "parrot"), sources, strict=True):
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    entries = [text for kind, text in blocks if kind == "yaml" and ("vlm:\n" in text or "vla:\n" in text)]
    files = []
    for number, text in enumerate(entries):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(text, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, os.pathsep.join(map(str, files)))
    monkeypatch.syspath_prepend(tmp_path)
    vlms: Catalogue[ModelEntry] = Catalogue("vlm", ModelEntry)
    vlas: Catalogue[PolicyEntry] = Catalogue("vla", PolicyEntry)
    assert {"eyes", "parrot"} <= set(vlms)
    assert {"hands", "wander"} <= set(vlas)
    for entry in (vlms["parrot"], vlas["wander"]):
        assert [finding.ok for finding in examine(entry)] == [True, True]
    wander = vlas["wander"].build()
    assert (wander.act(wander.make_example()).deltas == wander.act(wander.make_example()).deltas).all()
