"""Policies that keep a state: a copy, and a session of a server, for each side of an image and each trial."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from point_added import EXPERIMENT, HERE, add_point, forget

from merton.config import dumps, loads, plain, tree_of
from merton.decision.models.base import PolicyEntry
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.openpi import OpenPi, OpenPiSettings
from merton.decision.models.openvla_rest import OpenVlaRest
from merton.errors import InfrastructureError, InputError
from merton.experiment.forks import run_forked
from merton.experiment.local import ports_of
from merton.experiment.parts import dissection
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.trial import TrialRun
from merton.experiment.world_ports import WorldPorts
from merton.models import serving
from merton.models.remote import Patience
from wire import LIMIT_S, Wire, observation, websocket_server

QUICK = Patience(deadline_s=LIMIT_S, pause_s=0.01)
ENTRIES = "".join(
    f"""
  - name: {name}
    description: "keeps rows"
    adapter: "counting_policy:Counting"
    cameras: [top]
    stand_ins: {{top: above}}
    action: rows
    stateful: {keeps}
"""
    for name, keeps in (("counting", "true"), ("counting-once", "false"))
)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldPorts[Any]]:
    """The point world, in a process of its own, whose camera stands in for the policy's."""
    folder = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        add_point(folder, patch)
        shutil.copy(HERE / "counting_policy.py", folder)
        (folder / "more.yaml").write_text("vla:" + ENTRIES)
        patch.setenv("MERTON_CATALOGUE", f"{folder / 'worlds.yaml'}:{folder / 'more.yaml'}")
        patch.setattr(sys, "path", [*sys.path])
        forget(patch)
        with ports_of("point") as opened:
            yield opened


def spec_of(policy: str) -> ExperimentSpec:
    agents = [{"id": "it", "vla": policy}]
    return loads(dumps({**plain(tree_of(EXPERIMENT, "small")), "agents": agents}), ExperimentSpec, "small.yaml")


def first_pair(ports: WorldPorts[Any], policy: str, distortion: str = "reference") -> tuple[float, float]:
    """The first columns of both first decisions of a trial, in steps."""
    spec = spec_of(policy)
    level = 0 if distortion == "reference" else 5
    run = TrialRun(ports, spec, Trial(spec.agents[0], spec.case("reach", 0, distortion, level)))
    run.take_step()
    assert run.first_chunks is not None
    reference, distorted = (chunk.deltas[0, 0] / 0.01 for chunk in run.first_chunks)
    return round(reference, 6), round(distorted, 6)


def test_each_side_has_a_copy_that_begins_anew_with_every_trial(ports: WorldPorts[Any]) -> None:
    assert first_pair(ports, "counting") == (1.0, 1.0)
    assert first_pair(ports, "counting", "max_darken") == (1.0, 1.0)
    assert first_pair(ports, "counting-once") == (2.0, 1.0), "one copy is asked for the distorted side, then the other"


def test_it_sees_the_camera_that_stands_in(ports: WorldPorts[Any]) -> None:
    spec = spec_of("counting")
    assert spec.vla_entry("counting").cameras == ("above",)
    run = TrialRun(ports, spec, Trial(spec.agents[0], spec.case("reach", 0, "max_darken", 5)))
    run.take_step()
    assert run.first_chunks is not None
    reference, distorted = run.first_chunks
    assert reference.deltas[0, 1] != distorted.deltas[0, 1], "the copies saw pictures of other brightness"
    assert set(distorted.images or ()) == {"above"}


def test_its_forks_are_separate_runs(ports: WorldPorts[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorldPorts, "snapshot", lambda _: pytest.fail("what a policy remembers is in no snapshot"))
    spec = spec_of("counting").model_copy(update={"max_steps": 5})
    trial = Trial(spec.agents[0], spec.case("reach", 1, "max_darken", 5))
    specs = [spec.model_copy(update={"distort": part}) for part in dissection(spec, spec.agents[0]).designs.values()]
    assert len(specs) > 2
    for one, run in zip(specs, run_forked(ports, specs, trial), strict=True):
        alone = TrialRun(ports, one, trial)
        while not alone.over:
            alone.take_step()
        assert (alone.path, alone.steps) == (run.path, run.steps)


class Remembers:
    """A class to serve: its sessions count their calls, and share the weights."""

    built = 0

    def __init__(self) -> None:
        Remembers.built += 1

    def session(self) -> Any:
        return Session()


class Session:
    """Gives (n, 8) velocities that tell how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def act(self, observation: dict[str, Any]) -> Any:
        self.calls += 1
        return np.full((4, 8), 0.1 * self.calls)


class OneState(Session):
    """Keeps one state for all its clients."""


@contextmanager
def served(model: type) -> Iterator[str]:
    pytest.importorskip("websockets", reason="the extra `remote` is not installed")
    running = serving.server(f"{__name__}:{model.__name__}", "openpi", port=0)
    threading.Thread(target=running.run, daemon=True).start()
    try:
        yield f"ws://127.0.0.1:{running.port}"
    finally:
        running.close()


def stateful(url: str, rows: int = 0, dialect: str = "droid") -> OpenPi:
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    chosen = OpenPiSettings(url=url, rows=rows, dialect=dialect, patience=QUICK)
    return OpenPi("pi", chosen, CONVENTIONS["droid"], ("side", "wrist"), "joints", stateful=True)


def asked(policy: OpenPi) -> float:
    """The number of the call, as the server counts it."""
    chunk = policy.act(observation("side", "wrist"))
    expected = [CONVENTIONS["droid"].chunk(np.full((4, 8), 0.1 * calls)).deltas for calls in range(1, 6)]
    return next(number for number, deltas in enumerate(expected, 1) if np.allclose(deltas, chunk.deltas))


def test_a_policy_of_openpi_has_a_session_that_ends_with_the_trial() -> None:
    with served(Remembers) as url:
        built, (one, other) = Remembers.built, (stateful(url), stateful(url))
        assert [asked(one), asked(one), asked(other), asked(one), asked(other)] == [1, 2, 1, 3, 2]
        one.begin_trial()
        assert [asked(one), asked(one), asked(other)] == [1, 2, 3]
        assert Remembers.built == built, "its weights are loaded once"


def test_a_server_with_one_state_for_all_is_refused() -> None:
    with served(OneState) as url, pytest.raises(InfrastructureError, match=r"one state for all .*needs session\(\)"):
        stateful(url).act(observation("side", "wrist"))


def test_a_session_that_breaks_is_not_replaced_within_a_trial() -> None:
    def cut(message: Any, wire: Wire) -> Any:
        return None

    def answer(message: Any, wire: Wire) -> Any:
        return serving.pack({"actions": np.zeros((4, 8))})

    with websocket_server(serving.pack({}), cut, answer, cut, answer) as wire:
        policy = stateful(wire.ws)
        policy.act(observation("side", "wrist"))  # the first request may be repeated: nothing was remembered
        with pytest.raises(InfrastructureError, match=r"session of pi at .* has broken"):
            policy.act(observation("side", "wrist"))
        policy.begin_trial()
        policy.act(observation("side", "wrist"))
    assert len(wire.requests) == 4


def test_roboarenas_policies_are_reset_once_a_trial() -> None:
    def answer(message: Any, wire: Wire) -> Any:
        if serving.unpack(message)["endpoint"] == "reset":
            return "reset successful"
        return serving.pack({"actions": np.zeros((4, 8))})

    with websocket_server(serving.pack({}), answer) as wire:
        policy = stateful(wire.ws, dialect="roboarena")
        for _ in range(2):
            policy.begin_trial()
            policy.act(observation("side", "wrist"))
            policy.act(observation("side", "wrist"))
    sent = [serving.unpack(message) for message in wire.requests]
    assert [one["endpoint"] for one in sent] == ["reset", "infer", "infer"] * 2
    assert len({one["session_id"] for one in sent if one["endpoint"] == "infer"}) == 2


def test_what_does_not_tell_clients_apart_has_no_sessions() -> None:
    with pytest.raises(serving.ServingError, match="does not tell clients apart"):
        serving.server(f"{__name__}:Remembers", "act", port=0)
    entry = PolicyEntry(
        name="mine", description="", adapter="openvla_rest", cameras=("top",), convention="libero", stateful=True
    )
    with pytest.raises(InputError, match="mine: /act has no sessions"):
        OpenVlaRest.from_entry(entry)
