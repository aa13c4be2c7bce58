"""The imports of a node at its start: nine nodes start at once on two cores."""

from __future__ import annotations

import subprocess
import sys

LIGHT = (
    "models.vlm_node",
    "models.vla_node",
    "arm.arm_node",
    "cell.mujoco_cell_node",
    "cameras.camera_node",
    "experiment.aggregator_node",
    "experiment.experiment_node",
)
HEAVY = ("scipy.linalg", "scipy.sparse", "rapidfuzz", "matplotlib", "torch", "transformers")
"""Each takes longer to import than a node's own code; scorer_node and some distortions use the first three."""


def test_most_nodes_and_the_command_start_without_heavy_imports() -> None:
    modules = ["merton.cli.main", *(f"merton_nodes.{node}" for node in LIGHT)]
    code = f"import sys, {', '.join(modules)}; print([name for name in {HEAVY} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "[]", ended.stderr
