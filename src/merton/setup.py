"""For colcon. The extras are those of the root's pyproject.toml, so that pip can add them to what colcon installed."""

from pathlib import Path

import tomllib
from setuptools import setup

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

setup(extras_require=PROJECT["optional-dependencies"])
