"""A policy in the embedded cell without images: the decision and execution stages in one process."""

from __future__ import annotations

from merton.decision.models.base import Policy
from merton.execution.gate.planner import MotionPlan, plan, segments
from merton.execution.robots.gripper import Gripper
from merton.simulation.cell import SimulatedCell
from merton.world.observation import Observation


def observe(cell: SimulatedCell, instruction: str, step: int = 0) -> Observation:
    gripper_open = Gripper.from_cell(cell.config).gripper_open(cell.gripper_opening_m)
    return Observation({}, cell.joints_rad, cell.base_from_tcp, gripper_open, instruction, step, cell.scene_state())


def perform(cell: SimulatedCell, policy: Policy, most_chunks: int = 3) -> list[MotionPlan]:
    """Look, decide, plan and execute until the policy is done: the plans of its chunks."""
    assert cell.scene is not None
    gripper, commanded, plans = Gripper.from_cell(cell.config), 1.0, []
    for step in range(most_chunks):
        chunk = policy.act(observe(cell, cell.scene.command.instruction, step))
        motion = plan(cell.joints_rad, chunk.deltas, chunk.step_s, chunk.frame, cell.config, start_gripper=commanded)
        plans.append(motion)
        for segment in segments(motion):
            if segment.gripper is not None:
                commanded = segment.gripper
                cell.command_gripper(gripper.opening_m(commanded))
                cell.advance(10.0)
            if segment.moves:
                cell.command_trajectory(segment.times_s, segment.joints_rad, segment.velocities_rad_s)
                cell.advance(60.0)
        if chunk.done or not motion.verdict.ok:
            break
    return plans
