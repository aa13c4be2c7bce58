"""Joining a Ray cluster, with a stand-in for the package: no cluster is one sentence, and never a long wait."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from merton.cluster import joined
from merton.errors import InfrastructureError
from merton.processes import ONE_THREAD


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each `ray.init`; the stand-in knows no running cluster."""
    found: list[dict[str, Any]] = []

    def init(**arguments: Any) -> None:
        found.append(arguments)
        if arguments["address"] == "auto":
            raise ConnectionError("Could not find any running Ray instance.\nMore words.")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    return found


def test_without_an_address_a_cluster_is_started_here(
    started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    joined(3)
    monkeypatch.setenv("RAY_ADDRESS", "")
    joined(None)
    assert [(call["address"], call["num_cpus"]) for call in started] == [("local", 3), ("local", None)]
    assert started[0]["runtime_env"] == {"env_vars": {**ONE_THREAD, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}}


def test_an_address_that_answers_is_joined(started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{server.getsockname()[1]}")
        joined(3)
    assert len(started) == 1
    assert "num_cpus" not in started[0], "a cluster has the cores that it has"


def test_an_address_without_a_cluster_is_one_sentence(
    started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: nothing else takes the port, and nothing answers
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(InfrastructureError, match=rf"there is no Ray cluster at RAY_ADDRESS={address}: .*refused"):
            joined(None)
    assert started == []
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InfrastructureError) as told:
        joined(None)
    assert str(told.value) == "there is no Ray cluster at RAY_ADDRESS=auto: Could not find any running Ray instance."
