"""Decision: turns an observation into a chunk of 7-DoF deltas."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from merton_interfaces.msg import CellState
from merton_interfaces.srv import PredictActions
from rclpy.callback_groups import ReentrantCallbackGroup

from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode, InfrastructureError
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import Observation, SceneState
from merton_nodes.models.model_node import ModelNode, reading
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import run


class NoSceneError(InfrastructureError):
    """The policy needs the state of the scene, and the cell does not publish it."""


class VlaNode(ModelNode[Observation, ActionChunk]):
    """Every policy of the catalogue behind one service; one that is not preloaded is loaded at its first request."""

    def __init__(self, **options: Any) -> None:
        super().__init__("vla_node", **options)

    def set_up(self) -> None:
        self.serve(POLICIES, ["servo"])
        self.scene_deadline_s = self.parameter(
            "scene_deadline_s",
            5.0,
            "how long the oracle waits for the simulator's state [s]",
            minimum=0.1,
            maximum=60.0,
        )
        self.state: CellState | None = None
        self.create_subscription(CellState, names.CELL_STATE, self.on_state, names.RELIABLE_QOS)
        # reentrant: while a call waits, states and other calls must still come in
        self.create_service(PredictActions, names.PREDICT, self.on_predict, callback_group=ReentrantCallbackGroup())

    def on_state(self, state: CellState) -> None:
        """Keep the newest state for the oracle."""
        self.state = state
        self.waits.check()

    async def scene_at(self, stamp_ns: int) -> SceneState:
        """The simulator's state at `stamp_ns` or later; raises NoSceneError if none comes in time."""

        def has_come() -> bool:
            return self.state is not None and convert.nanoseconds_of(self.state.header.stamp) >= stamp_ns

        if not await self.waits.until(has_come, self.scene_deadline_s):
            raise NoSceneError(
                f"no {names.CELL_STATE} for {self.scene_deadline_s:g} s: only a simulated cell has an oracle"
            )
        state = self.state
        assert state is not None
        if not state.objects:
            raise NoSceneError("this cell does not know where its objects are: only a simulated one has an oracle")
        return convert.scene_of(state)

    async def observation(self, request: PredictActions.Request) -> Observation:
        """The policy's input.

        Raises InfrastructureError for a malformed request, a missing scene, or a policy that keeps a state.
        """
        entry = self.entry(request.model_id)
        if entry.stateful:
            raise InfrastructureError(
                f"{entry.name} keeps a state from call to call, and a graph has one model for both sides of an image: "
                "run it without ROS (merton run --in-process)"
            )
        needs_scene = entry.needs_scene
        with reading():
            return Observation(
                views={view.camera: convert.view_of(view) for view in request.views},
                joints_rad=np.array(request.state.position[:6]),
                base_from_tcp=convert.matrix_of(request.tcp.pose),
                gripper_open=request.gripper,
                instruction=request.instruction,
                step=request.step,
                scene=await self.scene_at(convert.nanoseconds_of(request.tcp.header.stamp)) if needs_scene else None,
                noise_seed=request.seed,
            )

    def failure(self, error: Exception) -> tuple[ErrorCode, str]:
        """NO_SCENE for a missing scene, else as for every model."""
        code, sentence = super().failure(error)
        return (ErrorCode.NO_SCENE if isinstance(error, NoSceneError) else code), sentence

    async def on_predict(
        self, request: PredictActions.Request, response: PredictActions.Response
    ) -> PredictActions.Response:
        """Service: decide. A model's failure is in the response, never an exception."""
        started = time.monotonic()
        try:
            chunk = await self.ask(request.model_id, await self.observation(request))
            chunk = checked_chunk(
                chunk.deltas,
                chunk.step_s,
                frame=chunk.frame,
                model=request.model_id,
                latency_s=time.monotonic() - started,
                done=chunk.done,
            )
            stamp_ns = convert.nanoseconds_of(request.tcp.header.stamp)
            response.chunk = convert.chunk_message(chunk, stamp_ns, request.trial_id)
            self.counters["decisions"] += 1
        except Exception as error:  # a model may raise any type; the node goes on
            response.error_code, response.error_msg = self.failure(error)
        return response


def main() -> None:
    sys.exit(run(VlaNode))
