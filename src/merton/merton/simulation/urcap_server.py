"""A simulated Robotiq 2F-140 behind the socket of its URCap.

    python -m merton.simulation.urcap_server --address 127.0.0.1

A stand-in: the fingers run at the commanded speed, and stop at an object if there is one between them, and at the ends
of their way, which are not those of the register.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import re

from merton.execution.robots.gripper import REGISTER_MAX, SPEED_RANGE_M_S, Grip, Gripper
from merton.execution.robots.urcap import ACTIVE, PORT, RESET
from merton.world.cell import load_cell

CYCLE_S = 0.008
"""Between two steps of the simulation."""
EXCHANGE_S = 0.05
"""Between two exchanges of registers. Ours: within the 2 to 100 ms that are reported of real ones."""
WRITABLE = ("ACT", "GTO", "POS", "SPE", "FOR", "ATR", "ARD")
ACTIVATING = 1
RELEASING, RELEASED = 11, 15
"""Values of FLT during and after an automatic release."""
ACTIVATION_S = 0.5
"""Ours: a real one takes two to three seconds, opening and closing once."""


class UrcapServer:
    """The gripper's registers and how they change.

    `SET` writes into the URCap, `GET` reads from it; the gripper has its own registers, and the two are exchanged once
    a cycle. It becomes active when its ACT rises while its ATR is 0.

    Args:
        gripper: stroke, and the position register at both ends, which the fingers do not pass.
        exchange_s: the cycle [s].

    Attributes:
        registers: the gripper's own.
        object_opening_m: width of the object between the fingers [m]; NaN if there is none.
    """

    def __init__(self, gripper: Gripper | None = None, exchange_s: float = EXCHANGE_S) -> None:
        self.gripper, self.exchange_s = gripper or Gripper(), exchange_s
        self.object_opening_m = math.nan
        self.registers = dict.fromkeys(WRITABLE, 0) | {"STA": RESET, "OBJ": int(Grip.AT_POSITION), "FLT": 0, "PRE": 0}
        self.position = float(self.gripper.register_open)
        self._activation_left_s = 0.0
        self._written: dict[str, int] = {}
        self._next_exchange_s = exchange_s
        self._reported = self._now()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a line in, an answer without a line's end out, as the real URCap sends it."""
        with contextlib.suppress(asyncio.CancelledError):  # of the program's end: asyncio would log it as an error
            while line := (await reader.readline()).decode("ascii", "replace"):
                writer.write(self.answer(line.strip()).encode())

    def answer(self, line: str) -> str:
        """The answer to a line; "?" if it is not understood."""
        if found := re.fullmatch(r"GET (\w+)", line):
            name = found[1]
            return f"{name} {self._reported[name]}" if name in self._reported else "?"
        if re.fullmatch(r"SET( [A-Z]+ \d+)+", line):
            words = line.split()[1:]
            values = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
            if all(name in WRITABLE and value <= REGISTER_MAX for name, value in values.items()):
                self._written |= values
                return "ack"
        return "?"

    def set(self, values: dict[str, int]) -> None:
        """Write registers of the gripper itself."""
        registers = self.registers
        risen = values.get("ACT") == 1 and registers["ACT"] == 0
        registers |= values
        if registers["ACT"] == 0:
            registers |= {"STA": RESET, "GTO": 0, "FLT": 0}
        elif registers["ATR"]:
            if registers["FLT"] != RELEASED:
                registers |= {"STA": RESET, "FLT": RELEASING}
        elif risen:
            registers["STA"], self._activation_left_s = ACTIVATING, ACTIVATION_S
        if "POS" in values:
            registers["PRE"] = values["POS"]
        if registers["GTO"] and "POS" in values:
            registers["OBJ"] = Grip.MOVING

    def advance(self, duration_s: float) -> None:
        """Let time pass."""
        while duration_s >= self._next_exchange_s:
            self._move(self._next_exchange_s)
            duration_s -= self._next_exchange_s
            self._next_exchange_s = self.exchange_s
            written, self._written = self._written, {}
            self.set(written)
            self._reported = self._now()
        self._move(duration_s)
        self._next_exchange_s -= duration_s

    def _now(self) -> dict[str, int]:
        return self.registers | {"POS": round(self.position)}

    def _move(self, duration_s: float) -> None:
        registers, own = self.registers, self.gripper
        if registers["STA"] == ACTIVATING:
            self._activation_left_s -= duration_s
            if self._activation_left_s <= 0:
                registers["STA"] = ACTIVE
        slow, fast = SPEED_RANGE_M_S
        releasing = registers["FLT"] == RELEASING
        speed_m_s = slow if releasing else slow + (fast - slow) * registers["SPE"] / REGISTER_MAX
        step = (own.register_closed - own.register_open) * speed_m_s * duration_s / own.stroke_m
        if releasing:
            self.position = max(self.position - step, float(own.register_open))
            if self.position == own.register_open:
                registers["FLT"] = RELEASED
        if registers["STA"] != ACTIVE or not registers["GTO"] or registers["FLT"]:
            return
        goal = float(min(max(registers["PRE"], own.register_open), own.register_closed))
        blocked = math.inf
        if not math.isnan(self.object_opening_m):
            closed = 1 - own.gripper_open(self.object_opening_m)
            blocked = own.register_open + closed * (own.register_closed - own.register_open)
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
    gripper = UrcapServer(Gripper.from_cell(load_cell()))
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
