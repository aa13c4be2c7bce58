"""A small study for tests: a folder of pictures that people rate, and the application that serves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

from merton.config import dumps
from merton.web.access import Tokens
from merton_studies.people.serve import create_app
from merton_studies.people.study import Study, open_study

SECRETS = ("acme-vla-7", "gaussian_blur", "secret_place")
"""Names that stand in paths and facts of the study, and must never reach a browser."""


def make_project(folder: Path, pictures: int = 4, **settings: Any) -> Path:
    """A project of the protocol quality with pictures that differ in their colour; returns its file."""
    place = folder / "secret_place"
    for number in range(pictures):
        scene = place / "pictures" / f"scene{number // 2}"
        scene.mkdir(parents=True, exist_ok=True)
        shade = np.full((24, 32, 3), (40 * number % 256, 90, 200 - 9 * number % 150), np.uint8)
        Image.fromarray(shade).save(scene / ("reference.png" if number % 2 == 0 else "gaussian_blur.acme-vla-7.png"))
    project = {
        "name": "small",
        "title": "How good are these pictures?",
        "protocol": "quality",
        "items": {"images": {"folder": "pictures"}},
        "raters": 3,
        "ratings": 2,
        "instructions": "Look at each picture.\nThen say how good it is.",
        "contact": "lab@example.org",
        **settings,
    }
    path = place / "project.yaml"
    path.write_text(dumps(project), encoding="utf-8")
    return path


def client(study: Study, tokens: Path | None = None, token: str = "") -> TestClient:
    """Asks the application of a study under a name it goes by, with a token; a fault of it is an answer."""
    app = create_app(study, None if tokens is None else Tokens(tokens))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return TestClient(app, base_url="http://localhost:8100", headers=headers, raise_server_exceptions=False)


def opened(folder: Path, **settings: Any) -> Study:
    """The study of `make_project`."""
    return open_study(make_project(folder, **settings))
