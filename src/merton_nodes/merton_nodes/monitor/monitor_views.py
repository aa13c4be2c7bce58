"""Messages as the operator's page shows them, ready for JSON: no NaN, no bytes, no ROS."""

from __future__ import annotations

import math
from typing import Any

from merton_interfaces.msg import (
    ActionChunk,
    Answer,
    CellState,
    ConfirmationRequest,
    DistortionInfo,
    ExperimentProgress,
    ImageQuality,
    Rating,
    RatingArray,
    SafetyState,
    TrialResult,
)
from visualization_msgs.msg import Marker, MarkerArray

from merton_nodes.ros import conversions as convert

MODES = ("NORMAL", "REDUCED", "COLLISION_STOP", "EMERGENCY_STOP", "FAULT")
STOPPED = MODES[2:]
STATES = ("idle", "running", "finished", "cancelled", "failed")
OUTCOMES = ("SUCCESS", "FAILURE", "EMERGENCY_STOP", "INVALID_ACTION", "INFRASTRUCTURE", "ABSTAINED")
MOST_ACTIONS = 64
"""Rows of a chunk that are shown."""
MOST_POINTS = 200
"""Points of a path that are drawn."""


def number(value: float, digits: int = 4) -> float | None:
    """A rounded number; None for NaN and infinity."""
    return round(value, digits) if math.isfinite(value) else None


def name_of(index: int, names: tuple[str, ...]) -> str:
    """The name of a constant; its number if it has none."""
    return names[index] if index < len(names) else str(index)


def progress(message: ExperimentProgress) -> dict[str, Any]:
    """State and progress of experiment_node; times in seconds of wall time, None where not known."""
    return {
        "state": name_of(message.state, STATES),
        "run_id": message.run_id,
        "experiment": message.experiment,
        "completed": message.completed,
        "total": message.total,
        "trial_id": message.trial_id,
        "agent": message.agent,
        "task": message.task,
        "scene": message.scene,
        "distortion": message.distortion,
        "level": message.level,
        "stage": message.stage,
        "step": message.step,
        "next_trial_id": message.next_trial_id,
        "elapsed_s": number(message.elapsed_s, 1),
        "remaining_s": number(message.remaining_s, 1),
        "why": message.error_msg,
    }


def safety(message: SafetyState) -> dict[str, Any]:
    """The latch, or the cell's own stop."""
    return {
        "mode": name_of(message.mode, MODES),
        "message": message.message,
        "links": [link for link in (message.link_a, message.link_b) if link],
        "clearance_mm": number(1e3 * message.clearance, 1),
        "force_n": number(message.force, 1),
    }


def answer(message: Answer) -> dict[str, Any]:
    """An answer of the VLM as the page shows it."""
    return {
        "model": message.model_id,
        "question": message.question,
        "answer": message.answer or "(no answer)",
        "latency_ms": round(convert.nanoseconds_of(message.latency) / 1e6, 1),
    }


def chunk(message: ActionChunk) -> dict[str, Any]:
    """A chunk of the VLA: rows of translation [mm], rotation [deg] and gripper, 0 closed .. 1 open."""
    rows = []
    for action in message.actions[:MOST_ACTIONS]:
        t, r = action.translation, action.rotation
        row = [1e3 * t.x, 1e3 * t.y, 1e3 * t.z, math.degrees(r.x), math.degrees(r.y), math.degrees(r.z)]
        rows.append([*(number(value, 1) for value in row), number(action.gripper, 2)])
    return {
        "model": message.model_id,
        "frame": message.header.frame_id,
        "step_s": convert.nanoseconds_of(message.step) / 1e9,
        "latency_ms": round(convert.nanoseconds_of(message.latency) / 1e6, 1),
        "done": message.done,
        "total": len(message.actions),
        "actions": rows,
    }


def scene(message: CellState) -> dict[str, Any]:
    """The simulator's scene: instruction and positions of objects [m]."""
    return {
        "task": message.task,
        "seed": message.seed,
        "instruction": message.instruction,
        "success": message.success,
        "objects": [
            {"name": o.name, "at": [number(v, 3) for v in (o.pose.position.x, o.pose.position.y, o.pose.position.z)]}
            for o in message.objects
        ],
    }


def distortion(message: DistortionInfo) -> dict[str, Any]:
    """The name and the level of a distortion."""
    return {"name": message.name, "level": number(message.level, 2)}


def quality(message: ImageQuality) -> dict[str, Any]:
    """Quality of an image; shares are 0 for the worst and 1 for the best, None where the values have no end."""
    found = convert.quality_of(message)

    def share(value: float) -> float | None:
        way = number((value - message.worst) / (message.best - message.worst or math.nan), 3)
        return None if way is None or not math.isfinite(message.worst + message.best) else min(1.0, max(0.0, way))

    return {
        "value": number(message.value, 3),
        "metric": message.metric,
        "lower_is_better": not found.higher_is_better,
        "share": share(message.value),
        "minimum": number(message.minimum),
        "minimum_share": share(message.minimum),
        "refused": bool(message.minimum) and found.is_worse_than(message.minimum),
    }


def path(message: MarkerArray) -> dict[str, Any] | None:
    """The path the tool is about to take [m]; None if the message has none."""
    for marker in message.markers:
        if marker.ns == "path" and marker.action == Marker.ADD:
            points = marker.points[:: max(1, len(marker.points) // MOST_POINTS)]
            return {
                "points": [[number(p.x, 3), number(p.y, 3), number(p.z, 3)] for p in points],
                "cut_short": marker.color.r > marker.color.g,
            }
    return None


def waiting(message: ConfirmationRequest) -> dict[str, Any]:
    """The trial that waits for the operator; none if `trial_id` is empty."""
    return {"trial_id": message.trial_id, "instruction": message.instruction, "limit_s": number(message.limit, 1)}


def result(message: TrialResult) -> dict[str, Any]:
    """A line of the table of results."""
    return {
        "trial_id": message.trial_id,
        "agent": message.agent_id,
        "task": message.task,
        "seed": message.scene_seed,
        "distortion": message.distortion.name,
        "level": number(message.distortion.level, 2),
        "outcome": name_of(message.outcome, OUTCOMES),
        "cognition": number(message.cognition, 3),
        "decision": number(message.decision, 3),
        "execution": number(message.execution, 1),
        "why": message.error_msg,
    }


def ratings(message: RatingArray) -> dict[str, Any]:
    """The agents, best first."""
    agents = [rating for rating in message.ratings if rating.kind == Rating.AGENT]
    return {
        "experiment": message.experiment_id,
        "agents": [
            {"id": r.id, "mean": number(r.mean, 0), "deviation": number(r.deviation, 0), "matches": r.matches}
            for r in sorted(agents, key=lambda r: (-r.mean, r.id))
        ],
    }
