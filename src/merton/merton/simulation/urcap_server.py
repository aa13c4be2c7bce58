"""A simulated Robotiq 2F-140 behind the socket of its URCap.

    python -m merton.simulation.urcap_server --address 127.0.0.1

A stand-in: the fingers run at the commanded speed, and stop at an object if there is one between them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import re

from merton.execution.robots.gripper import SPEED_RANGE_M_S, Grip, Gripper
from merton.execution.robots.urcap import ACTIVE, PORT

CYCLE_S = 0.008
WRITABLE = ("ACT", "GTO", "POS", "SPE", "FOR", "ATR", "ARD")
RESET, ACTIVATING = 0, 1
ACTIVATION_S = 0.5
"""Ours: a real one takes two to three seconds, opening and closing once."""


class UrcapServer:
    """The gripper's registers and how they change.

    Attributes:
        object_opening_m: width of the object between the fingers [m]; NaN if there is none.
    """

    def __init__(self) -> None:
        self.gripper = Gripper()
        self.object_opening_m = math.nan
        self.registers = dict.fromkeys(WRITABLE, 0) | {"STA": RESET, "OBJ": int(Grip.AT_POSITION), "FLT": 0, "PRE": 0}
        self.position = 0.0
        self._activation_left_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a line in, an answer without a line's end out, as the real URCap sends it."""
        with contextlib.suppress(asyncio.CancelledError):  # of the program's end: asyncio would log it as an error
            while line := (await reader.readline()).decode("ascii", "replace"):
                writer.write(self.answer(line.strip()).encode())

    def answer(self, line: str) -> str:
        """The answer to a line; "?" if it is not understood."""
        if found := re.fullmatch(r"GET (\w+)", line):
            name = found[1]
            values = self.registers | {"POS": round(self.position)}
            return f"{name} {values[name]}" if name in values else "?"
        if re.fullmatch(r"SET( [A-Z]+ \d+)+", line):
            words = line.split()[1:]
            values = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
            if all(name in WRITABLE and value <= 255 for name, value in values.items()):
                self.set(values)
                return "ack"
        return "?"

    def set(self, values: dict[str, int]) -> None:
        """Write registers."""
        if values.get("ACT") == 1 and self.registers["ACT"] == 0:
            self.registers["STA"], self._activation_left_s = ACTIVATING, ACTIVATION_S
        elif values.get("ACT") == 0:
            self.registers |= {"STA": RESET, "GTO": 0, "FLT": 0}
        self.registers |= values
        if "POS" in values:
            self.registers["PRE"] = values["POS"]
        if self.registers["GTO"] and "POS" in values:
            self.registers["OBJ"] = Grip.MOVING

    def advance(self, duration_s: float) -> None:
        """Let time pass."""
        registers = self.registers
        if registers["STA"] == ACTIVATING:
            self._activation_left_s -= duration_s
            if self._activation_left_s <= 0:
                registers["STA"] = ACTIVE
        if registers["STA"] != ACTIVE or not registers["GTO"] or registers["FLT"]:
            return
        slow, fast = SPEED_RANGE_M_S
        speed_m_s = slow + (fast - slow) * registers["SPE"] / 255
        step = 255 * speed_m_s * duration_s / self.gripper.stroke_m
        goal = float(registers["PRE"])
        blocked = math.inf
        if not math.isnan(self.object_opening_m):
            blocked = 255 * (1 - self.gripper.gripper_open(self.object_opening_m))
        if goal > self.position:
            self.position = min(self.position + step, goal, max(blocked, self.position))
            at_object = self.position >= blocked and self.position < goal
        else:
            self.position = max(self.position - step, goal)
            at_object = False
        if at_object:
            registers["OBJ"] = Grip.OBJECT_INSIDE
        else:
            registers["OBJ"] = Grip.AT_POSITION if self.position == goal else Grip.MOVING


async def run(address: str) -> None:
    """Listen on an address, and move the fingers in real time; does not return."""
    gripper = UrcapServer()
    await asyncio.start_server(gripper.serve, address, PORT)
    print(f"ready {address}", flush=True)
    clock = asyncio.get_running_loop().time
    last_s = clock()
    while True:
        await asyncio.sleep(CYCLE_S)
        last_s, passed_s = clock(), clock() - last_s
        gripper.advance(passed_s)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--address", default="127.0.0.1", help="address to listen on")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(parser.parse_args().address))


if __name__ == "__main__":
    main()
