"""The built-in sample: rendered images of the embedded cell, and photographs that come with Python packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from merton.config import dumps
from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.tags import TAG_FILES, Tags, read_tags
from merton.perception.images import encode_image

RENDERED = 50
"""Number of images of the cell."""

_CAMERAS = {"wrist": "first_person", "top": "third_person", "side": "third_person"}

_PHOTOGRAPHS = Path(__file__).with_name("photographs.yaml")


def write_sample(out: Path) -> int:
    """Write the sample's references and their tag file into a new or empty folder; returns the number of images.

    50 images are rendered from the embedded cell, through its three cameras in turn. The nine photographs are added
    if scikit-image and scikit-learn are installed.

    Raises:
        InputError: the folder is not empty.
        MissingDependencyError: this machine cannot render off screen.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{str(out)!r} is not an empty folder; choose another one")
    entries = {}
    for name, content, tags in (*_rendered(), *_encoded_photographs()):
        layout.write(out / name, content)
        entries[name] = {**asdict(tags), "tasks": list(tags.tasks)}
    layout.write(out / TAG_FILES[0], dumps(entries, width=120).encode())
    return len(entries)


def _rendered() -> Iterator[tuple[str, bytes, Tags]]:
    # imported here: no other module of perception needs a simulator
    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import SimulatedCell

    cell, cameras = SimulatedCell(), SceneCameras()
    verbs = ("reach", "push", "pick", "place")  # their scenes have three objects to name
    try:
        for number in range(RENDERED):
            scene = cell.reset(verbs[number % len(verbs)], number)
            camera = list(_CAMERAS)[number % len(_CAMERAS)]
            view = cameras.render(scene.task, scene.seed, cell.qpos, camera)
            first, second, third = scene.placements
            goal = f"on the {scene.command.target}" if scene.command.target else f"between the {second} and the {third}"
            tasks = (
                f"Press the {first} from above",
                f"Push the {first} to the left",
                f"Pick the {first} up",
                f"Move the {third} next to the {second}",
                f"Place the {first} {goal}",
            )
            tags = Tags("simulation", _CAMERAS[camera], "block", "table", tasks)
            yield f"cell_{number:02d}_{camera}.png", encode_image(view.color), tags
    finally:
        cameras.close()


def photographs() -> Iterator[tuple[Path, Tags]]:
    """The photographs of `photographs.yaml` whose package is installed, with their tags."""
    for name, tags in read_tags(_PHOTOGRAPHS).items():
        package, _, path = name.partition("/")
        module = importlib.util.find_spec(package)
        file = Path(module.origin).parent / path if module and module.origin else None
        if file and file.is_file():
            yield file, tags


def _encoded_photographs() -> Iterator[tuple[str, bytes, Tags]]:
    for file, tags in photographs():
        yield f"photo_{file.stem}.png", encode_image(decode(file.read_bytes())), tags
