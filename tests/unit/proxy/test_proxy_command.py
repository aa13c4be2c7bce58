"""`merton proxy` as a command: mistakes are sentences, and a killed proxy is gone on with."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from proxied import websocket_server
from test_proxy_relay import Counting, episode
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from merton.cli.main import app
from merton.episodes.folder import EpisodesFolder
from merton.models.serving import pack

UPSTREAM = ("--upstream", "ws://127.0.0.1:1", "--as", "openpi")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["--as", "openpi"], "needs --upstream URL"),
        ([*UPSTREAM], "--design FILE"),
        ([*UPSTREAM, "--resume"], "--name"),
        ([*UPSTREAM, "--resume", "--name", "none"], "no run of episodes"),
        (["--upstream", "ws://127.0.0.1:1", "--as", "grpc"], "vla-eval"),
        (["--upstream", "ftp://x", "--as", "act"], "ws://127.0.0.1:8000"),
        ([*UPSTREAM, "--listen", "here"], "HOST:PORT"),
        ([*UPSTREAM, "--design", "d.yaml", "--agent", "Pi Zero"], "agent"),
    ],
    ids=["nothing", "no design", "no name", "no run", "protocol", "upstream", "listen", "agent"],
)
def test_a_mistake_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.yaml").write_text("name: d\n")
    result = CliRunner().invoke(app, ["proxy", *line])
    assert sentence in str(result.exception)
    assert not list(tmp_path.glob("runs/*"))


def proxy(folder: Path, *line: str) -> tuple[subprocess.Popen[str], str]:
    """A proxy in a process of its own, and its address once it listens."""
    words = [sys.executable, "-m", "merton", "proxy", "--listen", "127.0.0.1:0", "--name", "k", *line]
    process = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    loaded = False
    for said in process.stderr:
        loaded = loaded or said.startswith("the design's distortions are loaded, in ")
        if said.startswith("openpi at "):
            assert loaded, "the first picture of a harness must not wait for imports"
            return process, said.split()[2]
    raise AssertionError("it ended")


def test_a_killed_proxy_loses_the_episode_under_way_alone_and_its_condition_is_given_again(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("name: d\ndistortions: [gaussian_blur]\nlevels: [0, 4]\n")
    with websocket_server(Counting()) as upstream:
        first, url = proxy(tmp_path, "--upstream", upstream, "--as", "openpi", "--design", "d.yaml")
        episode(url)
        with connect(f"{url}/?task=pick&scene=1", compression=None) as connection:
            connection.recv()
            connection.send(pack({"image": np.zeros((16, 16, 3), np.uint8)}))
            connection.recv()
            first.send_signal(signal.SIGKILL)
            first.wait(10)
            with pytest.raises(ConnectionClosed):
                connection.recv(timeout=10)
        second, url = proxy(tmp_path, "--upstream", upstream, "--as", "openpi", "--resume")
        episode(url)
        episode(url)
        second.send_signal(signal.SIGTERM)
        assert second.wait(20) == 0
    for process in (first, second):
        assert process.stderr is not None
        process.stderr.close()
    found = EpisodesFolder.read(tmp_path / "runs" / "k")
    assert found.counts.lost >= 1
    assert {past.case.level for past in found.episodes if past.is_recorded} == {0, 4}
