"""The built-in sample: pictures of the embedded cell, and photographs that come with Python packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import yaml

from merton.errors import InputError
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode, encode_png
from merton.perception.dataset.tags import TAG_FILES, Tags

RENDERED = 50
"""Number of pictures of the cell."""

_CAMERAS = {"wrist": "first_person", "top": "third_person", "side": "third_person"}

PHOTOGRAPHS: dict[tuple[str, str], Tags] = {
    ("skimage", "data/astronaut.png"): Tags(
        "real", "third_person", "living", "room",
        (
            "Press the ring of the space suit", "Move the model rocket to the left", "Pick the model rocket up",
            "Cover the badge on the suit with a cloth", "Place the model rocket in front of the flag",
        ),
    ),
    ("skimage", "data/camera.png"): Tags(
        "real", "third_person", "tool", "outdoors",
        (
            "Push the tripod forward", "Press the button of the camera", "Cover the camera with its cap",
            "Twist the handle of the tripod", "Insert a film into the camera",
        ),
    ),
    ("skimage", "data/chelsea.png"): Tags(
        "real", "third_person", "living", "room",
        (
            "Push a toy towards the cat", "Pull the blanket away from the cat", "Cover the cat with the blanket",
            "Place a bowl in front of the cat", "Pour water into the bowl of the cat",
        ),
    ),
    ("skimage", "data/coffee.png"): Tags(
        "real", "first_person", "container", "table",
        (
            "Push the saucer forward", "Move the spoon to the right", "Pick the spoon up",
            "Place the cup beside the saucer", "Pour the coffee into another cup",
        ),
    ),
    ("skimage", "data/coins.png"): Tags(
        "real", "first_person", "tool", "plain",
        (
            "Push the largest coin to the left", "Cover the coin in the corner", "Pick the smallest coin up",
            "Place one coin on top of another", "Insert a coin between two others",
        ),
    ),
    ("skimage", "data/motorcycle_left.png"): Tags(
        "real", "third_person", "tool", "room",
        (
            "Push the motorcycle forward", "Press the brake lever", "Pull the clutch lever",
            "Twist the throttle", "Insert the key into the lock",
        ),
    ),
    ("skimage", "data/rocket.jpg"): Tags(
        "real", "third_person", "tool", "outdoors",
        (
            "Press the launch button", "Push the gate of the launch pad open", "Move the mast away from the rocket",
            "Pull the hose off the rocket", "Insert the plug into the rocket",
        ),
    ),
    ("sklearn", "datasets/images/china.jpg"): Tags(
        "real", "third_person", "container", "outdoors",
        (
            "Push the door of the pavilion open", "Move the lantern to the right", "Cover the railing with a cloth",
            "Place a lantern on the railing", "Pour water over the steps",
        ),
    ),
    ("sklearn", "datasets/images/flower.jpg"): Tags(
        "real", "first_person", "living", "plain",
        (
            "Push the flower to the left", "Pull a petal off the flower", "Pick the flower",
            "Cover the flower with a glass", "Insert the flower into a vase",
        ),
    ),
}  # fmt: skip
"""(package, file in it) to tags. Only those with something to handle; nothing is downloaded."""


def sample(out: Path) -> int:
    """Write the sample's references and their tag file into a new or empty folder; returns the number of images.

    50 pictures are rendered from the embedded cell, through its three cameras in turn. The nine photographs are added
    as far as scikit-image and scikit-learn are installed.

    Raises:
        InputError: the folder is not empty.
        MissingDependencyError: this machine cannot draw off screen.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{str(out)!r} is not an empty folder; choose another one")
    tags = {}
    for name, content, described in (*_rendered(), *_photographs()):
        layout.write(out / name, content)
        tags[name] = {**asdict(described), "tasks": list(described.tasks)}
    layout.write(out / TAG_FILES[0], yaml.safe_dump(tags, sort_keys=False, width=120).encode())
    return len(tags)


def _rendered() -> Iterator[tuple[str, bytes, Tags]]:
    # here, because nothing else of perception needs a simulator
    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import Cell

    cell, cameras = Cell(), SceneCameras()
    verbs = ("reach", "push", "pick", "place")  # whose scenes have three things to speak of
    try:
        for number in range(RENDERED):
            scene = cell.reset(verbs[number % len(verbs)], number)
            camera = list(_CAMERAS)[number % len(_CAMERAS)]
            view = cameras.render(scene.task, scene.seed, cell.qpos, camera)
            first, second, third = scene.placements
            goal = f"on the {scene.command.target}" if scene.command.target else f"between the {second} and the {third}"
            tasks = (
                f"Press the {first} from above", f"Push the {first} to the left", f"Pick the {first} up",
                f"Move the {third} next to the {second}", f"Place the {first} {goal}",
            )  # fmt: skip
            tags = Tags("simulation", _CAMERAS[camera], "block", "table", tasks)
            yield f"cell_{number:02d}_{camera}.png", encode_png(view.color), tags
    finally:
        cameras.close()


def _photographs() -> Iterator[tuple[str, bytes, Tags]]:
    for (package, path), tags in PHOTOGRAPHS.items():
        found = importlib.util.find_spec(package)
        file = Path(found.origin).parent / path if found and found.origin else None
        if file and file.is_file():
            yield f"photo_{file.stem}.png", encode_png(decode(file.read_bytes())), tags
