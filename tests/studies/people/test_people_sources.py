"""Items of people's projects: from the examples, from each source, and what the sources refuse."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from miniature_dataset import picture, write_miniature
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import ErrorCode, InputError
from merton.perception.images import encode_image
from merton.results.records import Outcome, TestCase
from merton.results.store import ResultStore
from merton_studies.curation.people import agreement_with_people, read_verification
from merton_studies.people.examples import write_example
from merton_studies.people.item import Item
from merton_studies.people.project import PROTOCOLS, read_project
from merton_studies.people.protocols import protocol_named
from merton_studies.people.sources import items_of, items_sha256
from merton_studies.people.study import open_study


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The project's file of an example of each protocol."""
    folder = tmp_path_factory.mktemp("examples")
    return {protocol: write_example(protocol, folder / protocol) for protocol in PROTOCOLS}


def items(folder: Path, protocol: str, source: str, **more: object) -> tuple[Item, ...]:
    """The items of a project with this source."""
    ratings = {"tasks": 5}.get(protocol, 2)
    extra = "".join(f"\n{key}: {value}" for key, value in more.items())
    file = folder / "project.yaml"
    file.write_text(
        f"name: test\ntitle: Test\nprotocol: {protocol}\nraters: 5\nratings: {ratings}\nitems: {{{source}}}{extra}\n"
    )
    return items_of(read_project(file))


def refusal(folder: Path, protocol: str, source: str) -> str:
    """The sentence of an InputError."""
    with pytest.raises(InputError) as refused:
        items(folder, protocol, source)
    assert "\n" not in str(refused.value)
    return str(refused.value)


COUNTS = {"tasks": 10, "episodes": 17, "trials": 12, "labels": 24, "likert": 12, "pairs": 18, "quality": 32}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_example_has_items_that_its_protocol_shows(examples: dict[str, Path], protocol: str) -> None:
    found = items_of(read_project(examples[protocol]))
    assert len(found) == COUNTS[protocol]
    again = items_of(read_project(examples[protocol]))
    assert (again, items_sha256(again)) == (found, items_sha256(found))
    plays = protocol_named(protocol)
    for item in found:
        assert set(plays.roles) <= set(item.media)
        view = str(plays.view(item, ()))
        assert item.id not in view
        for role, medium in item.media.items():
            assert (medium.role, medium.file.is_file()) == (role, True)
            assert re.fullmatch(r"[0-9a-f]{32}\.(png|reel)", medium.file.name), "a name tells nothing of its source"
            assert medium.kind == ("reel" if medium.frames > 1 else "image")
        if item.gold is not None:
            assert plays.is_right(item, item.gold)
    media = {medium.file: medium for item in found for medium in item.media.values()}
    sizes = {(medium.kind, medium.frames, file.stat().st_size) for file, medium in media.items()}
    assert len(sizes) == len({(kind, frames) for kind, frames, _ in sizes}), "a size tells what is shown"


def test_the_command_writes_an_example_and_says_what_is_in_a_project(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["people", "new", "pairs", "-o", str(tmp_path / "new")])
    assert "people serve" in made.stdout
    told = CliRunner().invoke(app, ["people", "check", str(tmp_path / "new" / "project.yaml")])
    assert "18 items in 6 scenes" in told.stdout
    assert "2 ratings" not in told.stdout
    assert "3 ratings of an item by 5 raters: about 12 answers of each" in told.stdout  # 18 * 3 / 5 and a tenth
    with pytest.raises(InputError, match="not an empty folder"):
        write_example("pairs", tmp_path / "new")
    with pytest.raises(InputError, match="unknown protocol 'pair'; did you mean 'pairs'"):
        write_example("pair", tmp_path / "other")


def test_pictures_of_a_folder_share_its_scene_and_its_hidden_reference(examples: dict[str, Path]) -> None:
    found = {item.id: item for item in items_of(read_project(examples["quality"]))}
    blurred, reference = found["table-03/blur.png"], found["table-03/reference.png"]
    assert blurred.scene == reference.scene == "table-03"
    assert (blurred.facts["reference"], reference.facts["reference"]) == (reference.id, "")
    assert (blurred.facts["distortion"], reference.facts["level"]) == ("blur", "0")
    assert {item.id for item in found.values() if item.gold} == {"table-00/ruined.png", "table-01/ruined.png"}


def test_pairs_are_of_one_folder(examples: dict[str, Path], tmp_path: Path) -> None:
    found = items_of(read_project(examples["pairs"]))
    pairs = Counter((item.facts["a"], item.facts["b"]) for item in found)
    assert pairs == {("blur", "compression"): 6, ("blur", "noise"): 6, ("compression", "noise"): 6}
    assert all(item.media["a"].file != item.media["b"].file for item in found)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.png").write_bytes(encode_image(picture(48, 1)))
    assert "no two pictures in one folder" in refusal(tmp_path, "pairs", "images: {folder: one}")


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    assert "there is no folder 'none'" in refusal(tmp_path, "tasks", "images: {folder: none}")
    (tmp_path / "pictures").mkdir()
    assert "has no pictures" in refusal(tmp_path, "tasks", "images: {folder: pictures}")
    (tmp_path / "pictures" / "a.png").write_bytes(b"no picture")
    assert "a.png' is not an intact image" in refusal(tmp_path, "tasks", "images: {folder: pictures}")


def test_a_picture_that_raters_were_asked_about_must_stay(examples: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(examples["tasks"].parent, tmp_path / "study")
    study = open_study(folder / "project.yaml")
    asked = study.desk.work(study.ledger.register("Ann").id).slots[0].item
    study.close()
    (folder / "pictures" / asked).unlink()
    with pytest.raises(InputError, match=f"raters were asked about '{asked}'.*put it back"):
        open_study(folder / "project.yaml")


def test_gold_is_of_items_and_an_answer_of_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(encode_image(picture(48, 1)))
    for gold, reason in {
        "b.png: {score: 1}": "there is no item 'b.png'; ids are like 'a.png'",
        "a.png: {score: 7}": "a.png: score: must be at most 5",
        "a.png: {score: 1, grade: 1}": "a.png: grade: unknown key",
        "a.png: 5": "must be a mapping",
    }.items():
        (tmp_path / "gold.yaml").write_text(gold)
        assert reason in refusal(tmp_path, "quality", "images: {folder: pictures}, gold: gold.yaml")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset `data`: 3 scenes, 3 cameras, 2 distortions at 2 levels."""
    folder = tmp_path_factory.mktemp("dataset")
    write_miniature(folder / "data", scenes=3, levels=(1, 4))
    return folder


def test_references_of_a_dataset_are_hidden_among_their_copies(dataset: Path) -> None:
    found = items(dataset, "quality", "dataset: {folder: data, references: 4, each: 3}", seed=7)
    by_id = {item.id: item for item in found}
    own = Counter(item.facts["reference_id"] for item in found)
    assert list(own.values()) == [4] * 4
    for item in found:
        scene, _, camera = item.facts["reference_id"].rpartition("_")
        assert (item.scene, camera in ("side", "top", "wrist")) == (scene, True)  # cameras of a scene are one scene
        reference = item.facts["reference"]
        assert (reference == "") == (item.facts["distortion"] == "reference")
        assert reference == "" or by_id[reference].facts["reference_id"] == item.facts["reference_id"]
    assert items(dataset, "quality", "dataset: {folder: data, references: 4, each: 3}", seed=7) == found
    other = items(dataset, "quality", "dataset: {folder: data, references: 4, each: 3}", seed=8)
    assert {item.id for item in other} != set(by_id)
    assert len(items(dataset, "quality", "dataset: {folder: data}")) == 9 * 5


def test_pairs_of_a_dataset_compare_the_same_conditions_on_every_reference(dataset: Path) -> None:
    found = items(dataset, "pairs", "dataset: {folder: data, each: 3}")
    pairs = Counter((item.facts["a"], item.facts["b"]) for item in found)
    assert len(pairs) == 3
    assert set(pairs.values()) == {9}


@pytest.mark.parametrize(
    ("protocol", "source", "reason"),
    [
        ("quality", "dataset: {folder: .}", "holds no finished dataset"),
        ("quality", "dataset: {folder: data, references: 10}", "items.dataset.references is 10, but there are 9"),
        ("quality", "dataset: {folder: data, domain: real}", "unknown domain of the dataset 'real'"),
        ("pairs", "dataset: {folder: data}", "need items.dataset.each, from 2 to 20"),
        ("pairs", "dataset: {folder: data, each: 5}", "only 4 distortions at a level"),
    ],
)
def test_a_dataset_that_cannot_give_the_items_is_refused(
    dataset: Path, protocol: str, source: str, reason: str
) -> None:
    assert reason in refusal(dataset, protocol, source)


def test_labels_are_balanced_and_their_export_is_read_with_the_assignment(
    examples: dict[str, Path], tmp_path: Path
) -> None:
    from merton_studies.curation.assignment import read_assignment

    found = items_of(read_project(examples["labels"]))
    each = Counter((item.facts["dimension"], item.facts["assigned"]) for item in found)
    assert each == {(name, answer): 4 for name in ("Counting", "Color", "Place") for answer in ("yes", "no")}
    rows = [f"{item.facts['question']},{item.facts['dimension']},R01,{item.facts['assigned']}" for item in found]
    table = tmp_path / "verification.csv"
    table.write_text("\n".join(["question_id,dimension,rater,verdict", *rows]))
    assignment = read_assignment(examples["labels"].parent / "questions" / "assignments.parquet")
    total = agreement_with_people(read_verification([table]), assignment)[-1]
    assert (total.name, total.kappa and total.kappa.value) == ("all", 1.0)
    assert "is no curated benchmark" in refusal(tmp_path, "labels", "curation: {folder: .}")


OUTPUTS = "model,scenario,video,instruction,plan\n"


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("", "has nothing to ask about"),
        ("m,Home,v.png,do it,\n", "line 2: plan is empty"),
        ("m,Home,w.png,do it,so\n", "line 2: there is no video 'w.png' beside the table"),
        ("m,Home,v.png,do it,so\nm,Home,v.png,do it,so\n", "line 3: 'm' has a plan for 'Home' already"),
        ("m,Home,v.png,do it,so\nm,Shop,v.png,do it,so\nn,Home,v.png,do it,so\n", "model 'n' has no plan for 'Shop'"),
        (f"m,Home,v.png,do it,{'x' * 20001}\n", "plan has 20001 characters"),
        ("m,Home,v.png,do it\n", "line 2"),
        ("Qwen-VL,Home,v.png,do it,I am qwen-vl. Look.\n", "line 2: the plan names the model 'qwen-vl'"),
    ],
)
def test_a_table_of_plans_that_is_wrong_is_refused(tmp_path: Path, rows: str, reason: str) -> None:
    (tmp_path / "outputs.csv").write_text(OUTPUTS + rows)
    (tmp_path / "v.png").write_bytes(encode_image(picture(48, 1)))
    assert reason in refusal(tmp_path, "likert", "outputs: {table: outputs.csv}")


def test_hostile_plans_are_kept_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "v.png").write_bytes(encode_image(picture(48, 1)))
    plan = "<script>alert(1)</script> \u202e'; DROP TABLE x; --"
    (tmp_path / "outputs.csv").write_text(f'{OUTPUTS}m,Home,v.png,do it,"{plan}"\n', encoding="utf-8")
    (item,) = items(tmp_path, "likert", "outputs: {table: outputs.csv}")
    assert item.texts["plan"] == plan


def test_videos_have_their_references(tmp_path: Path) -> None:
    def put(*names: str) -> None:
        for name in names:
            (tmp_path / "v" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "v" / name).write_bytes(encode_image(picture(48, len(name))))

    source = "videos: {folder: v}"
    assert "no folder 'reference'" in refusal(tmp_path, "episodes", source)
    put("reference/pick/00.png", "reference/pick/01.png", "reference/pick/02.png")
    assert "has no team beside 'reference'" in refusal(tmp_path, "episodes", source)
    put("ours/pick/00.jpg", "ours/pick/01/0.png", "ours/pick/01/1.png", "ours/pick/.thumbs.png", "ours/pick/notes.txt")
    first, second = items(tmp_path, "episodes", source)
    assert first.facts == {"team": "ours", "task": "pick", "video": "00", "real_videos": "3", "planted": ""}
    assert (first.scene, second.scene, second.media["video"].frames) == ("pick/00", "pick/01", 2)
    put("ours/pick/03.png")
    assert "has no reference: there is no '03' in reference/pick" in refusal(tmp_path, "episodes", source)
    put("ours/pick/00.png")
    assert "are two videos of one name" in refusal(tmp_path, "episodes", source)


@pytest.fixture(scope="module")
def run(examples: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with the run `drawn`, whose trials have every outcome, and a distorted one of each."""
    project = tmp_path_factory.mktemp("run")
    folder = shutil.copytree(examples["trials"].parent / "run", project / "run")
    with ResultStore(folder / "results.sqlite") as store:
        for number, record in enumerate(store.records()):
            case = TestCase("place", record.case.seed, "jpeg", 3)
            outcome, code = OUTCOMES[number % len(OUTCOMES)]
            other = replace(record, case=case, outcome=outcome, error_code=code, execution=None)
            store.record(other)
            shutil.copytree(folder / "trials" / record.id, folder / "trials" / other.id)
    return project


OUTCOMES = (
    (Outcome.FAILURE, 0),
    (Outcome.INFRASTRUCTURE, int(ErrorCode.NOT_JUDGED)),
    (Outcome.INFRASTRUCTURE, int(ErrorCode.ARM_FAILED)),
    (Outcome.EMERGENCY_STOP, int(ErrorCode.COLLISION)),
)


def test_trials_are_those_that_a_judge_decides(run: Path) -> None:
    found = items(run, "trials", "run: {run: run}")
    distorted = [item for item in found if ".jpeg." in item.id]
    assert Counter(item.facts["recorded"] for item in distorted) == {"failure": 3, "": 3}
    assert len(found) - len(distorted) == 12
    one = next(item for item in found if item.id == "servo.place.2.reference.0")
    assert (one.scene, one.facts["agent"], one.facts["run"]) == ("place.2", "servo", "drawn")
    assert (one.media["video"].frames, one.media["video"].rate_hz) == (10, 2.0)
    assert one.texts["instruction"].startswith("place the ")
    assert len(items(run, "trials", "run: {run: run, cases: 2}")) <= 4
    assert "unknown camera 'rear'; choose one of: top" in refusal(run, "trials", "run: {run: run, camera: rear}")
    assert "there is no run 'other'" in refusal(run, "trials", "run: {run: other}")


def test_agents_are_compared_on_one_case_and_episodes_with_their_reference(run: Path) -> None:
    pairs = items(run, "pairs", "run: {run: run}")
    assert {(item.facts["a"], item.facts["b"]) for item in pairs} == {("hold", "servo")}
    assert len({item.facts["case"] for item in pairs}) == len(pairs) >= 6
    episodes = items(run, "episodes", "run: {run: run}")
    assert {item.facts["video"].split(".", 1)[1] for item in episodes} == {"jpeg.3"}
    assert all(set(item.media) == {"reference", "video"} for item in episodes)


def test_films_take_the_place_of_pictures_and_know_their_scene(run: Path, tmp_path: Path) -> None:
    rows = ["team,task,video,scene,trial,score,sha256"]
    for team, level, score in (
        ("reference", "reference.0", ""),
        ("jpeg.3", "jpeg.3", ""),
        ("vanished", "reference.0", "1"),  # a defect planted into the film of the undistorted trial
    ):
        folder = tmp_path / "films" / team / "place" / "hold.0"
        folder.mkdir(parents=True)
        for number in range(4 if score else 3):
            (folder / f"{number}.png").write_bytes(encode_image(picture(48, number + len(team))))
        rows.append(f"{team},place,hold.0,place.0,hold.place.0.{level},{score},")
    shutil.copytree(run / "run", tmp_path / "run")
    assert "has no videos.csv" in refusal(tmp_path, "trials", "run: {run: run, videos: films}")
    (tmp_path / "films" / "videos.csv").write_text("\n".join(rows))
    filmed = items(tmp_path, "trials", "run: {run: run, videos: films}")
    assert {(item.id, item.media["video"].frames) for item in filmed} == {
        ("hold.place.0.reference.0", 3),
        ("hold.place.0.jpeg.3", 3),
    }
    episodes = items(tmp_path, "episodes", "videos: {folder: films}")
    assert [(one.scene, one.facts["team"], one.facts["planted"]) for one in episodes] == [
        ("place.0", "jpeg.3", ""),
        ("place.0", "vanished", "1"),
    ]


def test_a_run_without_pictures_is_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "run", tmp_path / "run", ignore=shutil.ignore_patterns("trials"))
    assert "has no trials with pictures for the protocol trials" in refusal(tmp_path, "trials", "run: {run: run}")
