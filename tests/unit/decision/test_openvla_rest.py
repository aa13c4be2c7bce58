"""OpenVLA's REST adapter against servers that behave and servers that do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from merton.decision.models.base import PolicyEntry
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.openvla_rest import ActSettings, OpenVlaRest
from merton.errors import InfrastructureError, InputError, InvalidActionError
from merton.models.remote import Patience
from merton.models.serving import from_json, to_json
from wire import LIMIT_S, Wire, closed_port, half_closed, http_server, observation, replying, silent

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

QUICK = Patience(deadline_s=LIMIT_S, pause_s=0.01)
BRIDGE = np.array([0.01, -0.02, 0.03, 0.0, 0.0, 0.1, 1.0])


def act_policy(wire: Wire, **chosen: Any) -> OpenVlaRest:
    values = ActSettings(url=wire.http, patience=chosen.pop("patience", QUICK), **chosen)
    return OpenVlaRest("vla", values, CONVENTIONS["bridge"], ("top",), "bridge_orig")


def test_an_act_request_and_its_reply() -> None:
    with http_server(replying(200, to_json(BRIDGE))) as wire:
        seen = observation("top")
        chunk = act_policy(wire).act(seen)
        act_policy(wire, noise_seed=True).act(seen)
    assert np.array_equal(chunk.deltas, CONVENTIONS["bridge"].chunk(BRIDGE).deltas)
    first, second = wire.requests
    assert (first.method, first.path) == ("POST", "/act")
    assert set(first.body) == {"image", "instruction", "unnorm_key"}
    assert np.array_equal(from_json(first.body["image"]), seen.views["top"].color)
    assert (first.body["instruction"], first.body["unnorm_key"]) == ("pick up the red cube", "bridge_orig")
    assert second.body["noise_seed"] == 7


@pytest.mark.parametrize(
    "reply",
    [
        BRIDGE.tolist(),
        json.dumps(to_json(BRIDGE)),
        {"action": BRIDGE.tolist()},
        {"action": to_json(BRIDGE)},
        {"actions": [BRIDGE.tolist()], "time_s": 0.1},
        json.dumps({"action": BRIDGE.tolist()}),
    ],
    ids=["list", "encoded twice", "action", "array in action", "actions", "action encoded twice"],
)
def test_other_forms_of_an_array(reply: Any) -> None:
    with http_server(replying(200, reply)) as wire:
        assert act_policy(wire).act(observation("top")).deltas[0, :3] == pytest.approx(BRIDGE[:3])


@pytest.mark.parametrize(
    "reply",
    [
        "error",
        "nonsense",
        {"action": 1},
        [1, 2, 3],
        [[1, 2], [3]],
        [None] * 7,
        to_json(np.full(7, np.nan)),
        {"__numpy__": "!", "dtype": "<f8", "shape": [7]},
        {"__numpy__": "AAAA", "dtype": "<f8", "shape": [7]},
        {"__numpy__": "AAAA", "dtype": "|O", "shape": [1]},
        [10**400, 0, 0, 0, 0, 0, 0],
        ("[" * 900 + "]" * 900).encode(),
    ],
)
def test_an_act_servers_own_failure_is_an_invalid_action(reply: Any) -> None:
    with http_server(replying(200, reply)) as wire:
        with pytest.raises(InvalidActionError, match="vla"):
            act_policy(wire).act(observation("top"))
        assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "step",
    [
        replying(500, "down"),
        replying(429, "later"),
        replying(200, b"<html>"),
        replying(404, "no"),
        half_closed,
        replying(200, {"error": "x"}),
    ],
)
def test_faults_of_an_act_server(step: Any) -> None:
    with http_server(step) as wire, pytest.raises(InfrastructureError, match=r"127\.0\.0\.1"):
        act_policy(wire).act(observation("top"))


def test_slow_and_absent_servers() -> None:
    with http_server(silent) as wire, pytest.raises(InfrastructureError, match="within the deadline"):
        act_policy(wire, patience=Patience(deadline_s=0.3)).act(observation("top"))
    with pytest.raises(InfrastructureError, match="3 times ConnectError"):
        act_policy(Wire(closed_port())).act(observation("top"))
    with pytest.raises(InputError, match="needs camera 'top'"):
        act_policy(Wire(1)).act(observation("wrist"))


def test_from_the_catalogue_and_checked() -> None:
    with http_server(replying(200, to_json(BRIDGE))) as wire:
        entry = PolicyEntry(
            name="vla",
            description="",
            adapter="openvla_rest",
            cameras=("top",),
            convention="bridge",
            settings={"url": wire.http},
        )
        assert [one.ok for one in OpenVlaRest.from_entry(entry).check()] == [True]
        with pytest.raises(InputError, match="needs 1 of `cameras`, and has 0"):
            OpenVlaRest.from_entry(entry.model_copy(update={"cameras": ()}))
    with http_server(replying(200, "error")) as wire:
        (finding,) = act_policy(wire).check()
        assert not finding.ok
