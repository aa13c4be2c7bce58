"""The safety status bits of a UR controller, in words.

Source: Universal Robots, RTDE guide, field `safety_status_bits` (bits 0 to 10).
"""

from __future__ import annotations

NAMES = (
    "normal mode",
    "reduced mode",
    "protective stop",
    "recovery mode",
    "safeguard stop",
    "system emergency stop",
    "robot emergency stop",
    "emergency stop",
    "safety violation",
    "fault",
    "stopped due to safety",
)
"""Meaning of each bit, by number."""

STOP_BITS = sum(1 << bit for bit in range(2, 11))
"""Any of these, and the arm does not move."""
PROTECTIVE_STOP_BIT = 1 << 2
EMERGENCY_BITS = 1 << 5 | 1 << 6 | 1 << 7
REDUCED_BIT = 1 << 1


def describe(bits: int) -> str:
    """The safety stops in `bits`, comma-separated; empty for none."""
    found = [name for bit, name in enumerate(NAMES) if bits & STOP_BITS & 1 << bit]
    if len(found) > 1 and found[-1] == NAMES[10]:
        found.pop()  # adds nothing to the others
    return ", ".join(found)
