"""An example's folder: project.yaml and the material that it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from merton.config import dumps
from merton.errors import InfrastructureError, UnknownNameError
from merton.files import refuse_filled, write_file
from merton.perception.distortion import distort
from merton.perception.images import encode_image
from merton.results.csv_writer import write_csv
from merton.seeding import generator
from merton.world.observation import Image
from merton_studies.people.examples.drawing import Motion, colors, episode, table
from merton_studies.people.examples.labels import write_labels
from merton_studies.people.examples.run import write_run
from merton_studies.people.project import PROJECT_FILE, PROTOCOLS

DISTORTIONS = {"blur": "gaussian_blur", "compression": "jpeg", "noise": "white_noise", "darkness": "max_darken"}
"""Names of an example's files to distortions."""


def write_example(protocol: str, folder: Path) -> Path:
    """Write an example of a protocol into a new or empty folder; same protocol, same bytes (but for SQLite's journal).

    Returns:
        The project's file.

    Raises:
        UnknownNameError: no such protocol.
        InputError: the folder is not empty.
        InfrastructureError: it cannot be written.
        MissingDependencyError: the protocol labels without pyarrow.
    """
    if protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    refuse_filled(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        items, gold = _MATERIAL[protocol](folder)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(folder)!r}: {error.strerror}") from None
    if gold:
        write_file(folder / "gold.yaml", dumps(gold).encode())
    write_file(folder / PROJECT_FILE, _project(protocol, items, bool(gold)).encode())
    return folder / PROJECT_FILE


Material = tuple[str, dict[str, dict[str, object]]]
"""The source of the items as YAML, and the answers of gold items."""


def _tasks(folder: Path) -> Material:
    for seed in range(10):
        _picture(folder / "pictures" / f"table-{seed:02d}.png", table(seed))
    return "images: {folder: pictures}", {}


def _quality(folder: Path) -> Material:
    gold: dict[str, dict[str, object]] = {}
    for seed in range(6):
        scene, picture = f"table-{seed:02d}", table(seed)
        _picture(folder / "pictures" / scene / "reference.png", picture)
        for level, (name, distortion) in enumerate(DISTORTIONS.items(), 1):
            _picture(folder / "pictures" / scene / f"{name}.png", _worse(picture, distortion, level, seed))
        if seed < 2:
            ruined = _worse(_worse(picture, "gaussian_blur", 5, seed), "white_noise", 5, seed)
            _picture(folder / "pictures" / scene / "ruined.png", ruined)
            gold[f"{scene}/ruined.png"] = {"score": 1}
    return "images: {folder: pictures}", gold


def _pairs(folder: Path) -> Material:
    for seed in range(6):
        for name, distortion in list(DISTORTIONS.items())[:3]:
            picture = _worse(table(seed), distortion, 4, seed)
            _picture(folder / "pictures" / f"table-{seed:02d}" / f"{name}.png", picture)
    return "images: {folder: pictures, instruction: Which picture would you rather work with?}", {}


def _labels(folder: Path) -> Material:
    write_labels(folder / "questions")
    return "curation: {folder: questions, per_dimension: 8}", {}


def _likert(folder: Path) -> Material:
    rows = []
    plans = {
        "careful": "1. Reach above the {0} block. 2. Close the gripper on it. 3. Lift it. 4. Carry it above the bowl. "
        "5. Open the gripper.",
        "hasty": "1. Grab the {0} block. 2. Drop it in the bowl.",
        "confused": "1. Open the drawer. 2. Put the {1} block into it. 3. Close the drawer.",
    }
    for seed, scenario in enumerate(("Household", "Office", "Workshop", "Laboratory")):
        video = f"videos/{scenario.lower()}"
        _video(folder / video, episode(seed, "still"))
        first, other, *_ = colors(seed)
        instruction = f"Put the {first} block into the bowl."
        rows += [(model, scenario, video, instruction, plan.format(first, other)) for model, plan in plans.items()]
    write_csv(folder / "outputs.csv", ("model", "scenario", "video", "instruction", "plan"), rows)
    return "outputs: {table: outputs.csv}", {}


def _episodes(folder: Path) -> Material:
    for number, task in enumerate(("place_the_block_in_the_bowl", "clear_the_table")):
        for place in range(4):
            seed = 4 * number + place
            _video(folder / "videos" / "reference" / task / f"{place:02d}", episode(seed, "right"))
            _video(folder / "videos" / "team-a" / task / f"{place:02d}", episode(seed, _TEAM_A[place]))
            _video(folder / "videos" / "team-b" / task / f"{place:02d}", episode(seed, _TEAM_B[place]))
    gold: dict[str, object] = {"score": 0, "same_outcome": False, "defects": ["other_motion"]}
    _video(folder / "videos" / "control" / "clear_the_table" / "01", episode(5, "wild"))
    return "videos: {folder: videos}", {"control/clear_the_table/01": gold}


_TEAM_A: tuple[Motion, ...] = ("right", "right", "stretched", "right")
_TEAM_B: tuple[Motion, ...] = ("elsewhere", "wild", "stretched", "still")


def _trials(folder: Path) -> Material:
    write_run(folder / "run")
    return "run: {run: run, rate_hz: 5}", {"hold.place.0.reference.0": {"verdict": "failure"}}


_MATERIAL: dict[str, Callable[[Path], Material]] = {
    "tasks": _tasks,
    "episodes": _episodes,
    "trials": _trials,
    "labels": _labels,
    "likert": _likert,
    "pairs": _pairs,
    "quality": _quality,
}


def _project(protocol: str, items: str, has_gold: bool) -> str:
    source = (
        items
        if not has_gold
        else f"{items}\n  gold: gold.yaml      # right answers of some items, to find careless raters"
    )
    is_tasks = protocol == "tasks"
    lines = [
        "# An example of merton people: `merton people check` reads it, `merton people serve` opens its pages.",
        f"name: example-{protocol}",
        f"title: An example of the protocol {protocol}",
        f"protocol: {protocol}",
        "items:",
        f"  {source}",
        "raters: 5               # how many may register; or a list of names",
        *(["experts: [Expert]       # who puts the tasks in order and accepts them"] if is_tasks else []),
        f"ratings: {5 if is_tasks else 3}              # of an item, by different raters",
        *([] if is_tasks else ["repeats: 0.1            # share of a rater's items that come twice"]),
        "seed: 1                 # of every order",
        "record: people.sqlite   # where answers are kept; or a postgresql:// URL",
        f"instructions: {_INSTRUCTIONS[protocol]}",
        "contact: the person who sent you the link",
    ]
    return "\n".join(lines) + "\n"


_INSTRUCTIONS = {
    "tasks": "Write the next task for the robot arm in each picture, harder than those before it.",
    "episodes": "Compare each video with its reference, by the criteria beside them.",
    "trials": "Say of each video whether the arm did the task.",
    "labels": "Say of each question whether it needs the capability beside it.",
    "likert": "Read each plan for the video and its instruction, and mark it by eight criteria.",
    "pairs": "Say which of two pictures is better.",
    "quality": "Say how good each picture is. Some are meant to be good.",
}


def _worse(picture: Image, distortion: str, level: int, seed: int) -> Image:
    return distort(picture, distortion, level, generator("example", distortion, seed))


def _picture(file: Path, picture: Image) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_image(picture))


def _video(folder: Path, pictures: list[Image]) -> None:
    for number, picture in enumerate(pictures):
        _picture(folder / f"{number:02d}.png", picture)
