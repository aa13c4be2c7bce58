"""A simulated UR controller in a separate process, for tests and for the lab's graph without a robot.

    python -m merton.simulation.ur_controller --address 127.0.0.2

It is a stand-in (see `ur_arm`): it speaks RTDE (port 30004), takes the program of ur-rtde (30003), answers as a
dashboard (29999) and has the socket of the gripper's URCap (63352), well enough for the unmodified ur-rtde client.
It must be a separate process because the client's constructors hold Python's global lock while they wait.

Faults are lines on its standard input, each answered by a line "done ...": `protective_stop`, `emergency_stop`,
`unlock` (a person clears either stop at the robot), `drop_connections`, `stall SECONDS` (nothing is sent or read, the
arm moves on), `object OPENING_M` (an object between the fingers), `gripper_fault NUMBER` (register FLT; 0 ends it),
`quit`.

Packets: Universal Robots, "Real-Time Data Exchange (RTDE) Guide"; dashboard: "Dashboard Server CB3, port 29999".
"""

from __future__ import annotations

import argparse
import asyncio
import math
import selectors
import struct
import sys
from collections.abc import Awaitable, Callable

import numpy as np

from merton.simulation.ur_arm import CYCLE_S, REGISTERS, Safety, UrArm
from merton.simulation.urcap_server import PORT as GRIPPER_PORT
from merton.simulation.urcap_server import UrcapServer
from merton.world.cell import load_cell

RTDE_PORT, SCRIPT_PORT, DASHBOARD_PORT = 30004, 30003, 29999
VERSION = (3, 15, 8, 106339)

UNREAD_LIMIT = 1 << 20
"""Bytes a client may leave unread before its connection is closed."""

FORMATS = {
    "DOUBLE": "d",
    "INT32": "i",
    "UINT32": "I",
    "UINT64": "Q",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
}
NAN6 = [math.nan] * 6

# not simulated
_VECTORS = [
    "target_qdd", "target_current", "target_moment", "actual_current", "joint_control_output", "actual_TCP_pose",
    "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose", "target_TCP_speed", "joint_temperatures",
    "actual_joint_voltage", "payload_inertia", "ft_raw_wrench", "actual_current_as_torque",
]  # fmt: skip
_NUMBERS = [
    "actual_execution_time", "actual_momentum", "actual_main_voltage", "actual_robot_voltage", "actual_robot_current",
    "payload", "standard_analog_input0", "standard_analog_input1", "standard_analog_output0", "standard_analog_output1",
]  # fmt: skip

# name: (type, how to read it); fields that are not simulated are NaN
OUTPUTS: dict[str, tuple[str, Callable[[UrArm], list[float]]]] = {
    "timestamp": ("DOUBLE", lambda arm: [arm.time_s]),
    "target_q": ("VECTOR6D", lambda arm: arm.target_rad.tolist()),
    "actual_q": ("VECTOR6D", lambda arm: arm.joints_rad.tolist()),
    "actual_qd": ("VECTOR6D", lambda arm: arm.velocities_rad_s.tolist()),
    "target_qd": ("VECTOR6D", lambda arm: arm.velocities_rad_s.tolist()),
    "robot_mode": ("INT32", lambda arm: [3 if arm.safety is Safety.EMERGENCY_STOP else 7]),
    "joint_mode": ("VECTOR6INT32", lambda arm: [253] * 6),
    "safety_mode": ("INT32", lambda arm: [arm.safety.mode]),
    "runtime_state": ("UINT32", lambda arm: [2 if arm.program_running else 1]),
    "robot_status_bits": (
        "UINT32",
        lambda arm: [int(arm.safety is not Safety.EMERGENCY_STOP) | arm.program_running << 1],
    ),
    "safety_status_bits": ("UINT32", lambda arm: [arm.safety.bits]),
    "speed_scaling": ("DOUBLE", lambda arm: [1.0]),
    "target_speed_fraction": ("DOUBLE", lambda arm: [1.0]),
    **{name: ("VECTOR6D", lambda arm: NAN6) for name in _VECTORS},
    **{name: ("VECTOR3D", lambda arm: NAN6[:3]) for name in ("actual_tool_accelerometer", "payload_cog")},
    **{name: ("DOUBLE", lambda arm: [math.nan]) for name in _NUMBERS},
    **{name: ("UINT64", lambda arm: [0]) for name in ("actual_digital_input_bits", "actual_digital_output_bits")},
    **{
        f"output_int_register_{i}": ("INT32", lambda arm, i=i: [arm.output_int[i]])  # type: ignore[misc]
        for i in range(REGISTERS)
    },
    **{
        f"output_double_register_{i}": ("DOUBLE", lambda arm, i=i: [arm.output_double[i]])  # type: ignore[misc]
        for i in range(REGISTERS)
    },
}


def input_type(name: str) -> str:
    """Type of an input; NOT_FOUND if there is none of that name."""
    stem, _, number = name.rpartition("_")
    if number.isdecimal() and int(number) < REGISTERS:
        return {"input_int_register": "INT32", "input_double_register": "DOUBLE"}.get(stem, "NOT_FOUND")
    return "VECTOR6D" if name == "external_force_torque" else "NOT_FOUND"


class RtdeClient:
    """One RTDE connection: its recipes, and whether it has started its output."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.started = False
        self.every = 1
        self.outputs: list[Callable[[UrArm], list[float]]] = []
        self.layout = struct.Struct(">B")
        self.inputs: list[tuple[list[str], struct.Struct]] = []

    def send(self, kind: str, payload: bytes) -> None:
        """One packet: size with header, type, payload."""
        self.writer.write(struct.pack(">HB", 3 + len(payload), ord(kind)) + payload)

    def send_state(self, arm: UrArm) -> None:
        """One data package after the client's output recipe."""
        values = [value for read in self.outputs for value in read(arm)]
        self.send("U", self.layout.pack(1, *values))

    def answer(self, kind: str, payload: bytes) -> None:
        """Answer a request of the set-up stage."""
        if kind == "V":
            self.send(kind, b"\x01" if payload == b"\x00\x02" else b"\x00")
        elif kind == "v":
            self.send(kind, struct.pack(">4I", *VERSION))
        elif kind == "O":
            names = payload[8:].decode("ascii").strip(",").split(",")
            types = [OUTPUTS[name][0] if name in OUTPUTS else "NOT_FOUND" for name in names]
            self.every = max(1, round(1 / CYCLE_S / struct.unpack(">d", payload[:8])[0]))
            if "NOT_FOUND" not in types:
                self.outputs = [OUTPUTS[name][1] for name in names]
                self.layout = struct.Struct(">B" + "".join(FORMATS[kind] for kind in types))
            self.send(kind, b"\x01" + ",".join(types).encode())
        elif kind == "I":
            names = payload.decode("ascii").strip(",").split(",")
            types = [input_type(name) for name in names]
            if "NOT_FOUND" not in types:
                self.inputs.append((names, struct.Struct(">" + "".join(FORMATS[kind] for kind in types))))
            self.send(kind, bytes([len(self.inputs)]) + ",".join(types).encode())
        elif kind in "SP":
            self.started = kind == "S"
            self.send(kind, b"\x01")

    def write_registers(self, payload: bytes, arm: UrArm) -> None:
        """Put an input package into the registers."""
        names, layout = self.inputs[payload[0] - 1]
        values = list(layout.unpack(payload[1:]))
        for name in names:
            if name == "external_force_torque":
                del values[:6]
                continue
            stem, _, number = name.rpartition("_")
            registers = arm.input_int if stem == "input_int_register" else arm.input_double
            registers[int(number)] = values.pop(0)
        arm.feed_watchdog()


class UrController:
    """The servers around one simulated arm and its gripper."""

    def __init__(self, arm: UrArm, gripper: UrcapServer) -> None:
        self.arm, self.gripper = arm, gripper
        self.clients: dict[asyncio.StreamWriter, RtdeClient] = {}
        self.writers: set[asyncio.StreamWriter] = set()
        self.stalled_until_s = 0.0

    async def run(self, address: str) -> None:
        """Listen, and advance the arm in real time, until `quit`."""
        serve = asyncio.start_server
        await serve(self.guarded(self.rtde), address, RTDE_PORT)
        await serve(self.guarded(self.script), address, SCRIPT_PORT)
        await serve(self.guarded(self.dashboard), address, DASHBOARD_PORT)
        await serve(self.guarded(self.gripper.serve), address, GRIPPER_PORT)
        faults = asyncio.create_task(self.faults())
        print(f"ready {address}", flush=True)
        clock = asyncio.get_running_loop().time
        due_s, cycles = clock(), 0
        while not (faults.done() and faults.result()):
            self.arm.cycle()
            self.gripper.advance(CYCLE_S)
            cycles += 1
            if clock() >= self.stalled_until_s:
                self.send_state(cycles)
            due_s = max(due_s + CYCLE_S, clock() - 10 * CYCLE_S)  # a little lateness is made up for
            await asyncio.sleep(max(0.0, due_s - clock()))

    def send_state(self, cycles: int) -> None:
        """One data package to every client that is due in this cycle."""
        for client in list(self.clients.values()):
            if client.started and client.outputs and cycles % client.every == 0:
                if client.writer.transport.get_write_buffer_size() > UNREAD_LIMIT:
                    client.writer.transport.abort()
                else:
                    client.send_state(self.arm)

    def guarded(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        """A connection's handler that ends with its connection, and closes it after a malformed request."""

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.writers.add(writer)
            try:
                await serve(reader, writer)
            except (OSError, asyncio.IncompleteReadError, ValueError, struct.error, IndexError) as error:
                if isinstance(error, ValueError | struct.error | IndexError):
                    print(f"a client sent what cannot be understood: {error!r}", flush=True)
            except asyncio.CancelledError:
                pass  # the program's end: asyncio would log it as an error
            finally:
                self.writers.discard(writer)
                self.clients.pop(writer, None)
                writer.close()

        return handle

    async def not_stalled(self) -> None:
        """Wait until a stall is over."""
        clock = asyncio.get_running_loop().time
        while clock() < self.stalled_until_s:
            await asyncio.sleep(self.stalled_until_s - clock())

    async def rtde(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """RTDE, protocol version 2."""
        client = self.clients[writer] = RtdeClient(writer)
        while True:
            size, kind = struct.unpack(">HB", await reader.readexactly(3))
            payload = await reader.readexactly(size - 3)
            await self.not_stalled()
            if chr(kind) == "U":
                client.write_registers(payload, self.arm)
            else:
                client.answer(chr(kind), payload)

    async def script(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Programs: text from a line "def name():" to a line "end". Only that of ur-rtde is simulated."""
        text = ""
        while data := await reader.read(1 << 16):
            await self.not_stalled()
            text += data.decode("utf-8", "replace")
            while "\nend\n" in text:
                program, _, text = text.partition("\nend\n")
                if "def rtde_control():" in program:
                    self.arm.start_program()
                else:
                    print("a program that is not ur-rtde's is not simulated", flush=True)

    async def dashboard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The dashboard: a line in, a line out."""
        await self.not_stalled()
        writer.write(b"Connected: Universal Robots Dashboard Server\n")
        while line := (await reader.readline()).decode("utf-8", "replace").strip():
            await self.not_stalled()
            writer.write(self.dashboard_answer(line).encode() + b"\n")
            if line == "quit":
                return

    def dashboard_answer(self, line: str) -> str:
        """Answer of the dashboard to a line."""
        arm = self.arm
        if line == "unlock protective stop":
            return (
                "Protective stop releasing"
                if arm.unlock()
                else "Cannot unlock protective stop until 5s after occurrence."
                " Always inspect cause of protective stop before unlocking"
            )
        if line == "stop":
            arm.stop_program()
        powered = arm.safety is not Safety.EMERGENCY_STOP
        answers = {
            "PolyscopeVersion": "URSoftware {}.{}.{}.{} (simulated)".format(*VERSION),
            "robotmode": f"Robotmode: {'RUNNING' if powered else 'POWER_OFF'}",
            "safetymode": f"Safetymode: {arm.safety.title}",
            "safetystatus": f"Safetystatus: {arm.safety.title}",
            "running": f"Program running: {str(arm.program_running).lower()}",
            "programState": f"{'PLAYING' if arm.program_running else 'STOPPED'} <unnamed>",
            "get robot model": arm.arm.name.removesuffix("e"),
            "stop": "Stopped",
            "close safety popup": "closing safety popup",
            "close popup": "closing popup",
            "quit": "Disconnected",
        }
        return answers.get(line, f'could not understand: "{line}"')

    async def faults(self) -> bool:
        """Lines on standard input; True after `quit`. A closed input only ends the listening."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(sys.stdin, selectors.EVENT_READ)  # asyncio would find out too late, and only log it
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        except (OSError, ValueError):  # no input that can be waited for, such as /dev/null
            return False
        while line := (await reader.readline()).decode().strip():
            if line == "quit":
                return True
            try:
                self.fault(*line.split())
                print(f"done {line}", flush=True)
            except (TypeError, ValueError, KeyError):
                print(f"unknown fault {line!r}", flush=True)
        return False

    def fault(self, name: str, value: str = "nan") -> None:
        """Inject one fault."""
        if name in ("protective_stop", "emergency_stop"):
            self.arm.trip(Safety[name.upper()])
        elif name == "unlock":
            self.arm.clear()
        elif name == "drop_connections":
            for writer in list(self.writers):
                writer.transport.abort()
        elif name == "stall":
            self.stalled_until_s = asyncio.get_running_loop().time() + float(value)
        elif name == "object":
            self.gripper.object_opening_m = float(value)
        elif name == "gripper_fault":
            self.gripper.registers["FLT"] = int(value)
        else:
            raise KeyError(name)


def main() -> None:
    """Entry point of `python -m merton.simulation.ur_controller`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--address", default="127.0.0.1", help="loopback address to listen on; ports are fixed by ur-rtde"
    )
    parser.add_argument("--joints", type=float, nargs=6, help="where the arm stands at first [rad]; home if not given")
    parser.add_argument("--unlock-delay", type=float, default=5.0, help="how long a protective stop stays locked [s]")
    options = parser.parse_args()
    cell = load_cell()
    joints = np.array(options.joints if options.joints else cell.home_joints)
    if not np.isfinite(joints).all():
        parser.error("--joints takes six finite angles")
    controller = UrController(UrArm(cell.arm, joints, options.unlock_delay), UrcapServer())
    try:
        asyncio.run(controller.run(options.address))
    except OSError as error:
        parser.exit(1, f"cannot listen on {options.address}: {error}\n")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
