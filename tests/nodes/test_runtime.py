"""What every node shares: how it ends."""

from __future__ import annotations

import subprocess
import sys

IMPATIENT = """
import os, signal, sys
from merton_nodes.runtime import StageNode, run

class Slow(StageNode):
    def set_up(self):
        self.every(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))

    def tear_down(self):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        print("braked")

sys.exit(run(lambda: Slow("slow")))
"""


def test_a_second_ctrl_c_does_not_cut_off_what_a_node_does_last() -> None:
    ended = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "braked\n"), ended.stderr
    assert "Traceback" not in ended.stderr
