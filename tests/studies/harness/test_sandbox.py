"""The sandbox: what hostile programs reach, how they end, and what is there afterwards; by every engine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hostile import ALL, HEAD, SMALL, Hostile
from merton.errors import InputError, MissingDependencyError
from merton_studies.cli import commands
from merton_studies.harness import sandbox
from merton_studies.harness.confinement import engines, guarding, warden
from merton_studies.harness.confinement.seccomp import ARCHITECTURES, CLONE, CLONE3, REFUSED, seccomp_filter
from merton_studies.harness.sandbox import Ended, Limits, Sandbox
from patience import stretched, until

ROOT = Path(__file__).parents[3]
MARK = f"hostile_{os.getpid()}"
"""In the names of all programs of this process, so that theirs are told from those of other tests."""


def processes(mark: str = MARK) -> list[int]:
    """Processes of this machine that run one of the programs."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"/sandbox/code/{mark}".encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def state(folder: Path) -> dict[str, Any]:
    """Paths, rights and contents below a folder."""
    return {
        str(path): (path.lstat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in sorted(folder.rglob("*"))
    }


def available(engine: str) -> str:
    """Empty if an engine works here, else why not."""
    try:
        return Sandbox(Limits(), engine).run({"main.py": ""}, "main.py").reason
    except MissingDependencyError as error:
        return str(error)


@pytest.fixture(scope="module", params=engines.ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if why := available(request.param):
        pytest.skip(why)
    return str(request.param)


@pytest.fixture(scope="module")
def outside() -> Iterator[dict[str, Any]]:
    """A machine worth attacking: files, sockets and a process that no program may reach."""
    with tempfile.TemporaryDirectory(prefix="merton_sandbox") as place, socket.create_server(("127.0.0.1", 0)) as port:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "given").mkdir()
        (folder / "given" / "a.txt").write_text("as given\n")
        # open to all: only the mount keeps it as it is
        (folder / "given").chmod(0o777)
        (folder / "given" / "a.txt").chmod(0o666)
        (folder / "secret.txt").write_text("secret of the machine")
        with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
            abstract.bind(f"\0{MARK}")
            named.bind(str(folder / "socket"))
            for listener in (abstract, named):
                listener.listen()
            victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
            yield {"folder": folder, "listeners": (port, abstract, named), "victim": victim}
            victim.kill()
            victim.wait()


def around(outside: Mapping[str, Any]) -> str:
    """What the programs know of the machine."""
    column = list(ARCHITECTURES).index(platform.machine())
    folder = outside["folder"]
    installed = [str(Path(str(module.__file__)).parent) for module in (sandbox, pytest)]
    return json.dumps(
        {
            "port": outside["listeners"][0].getsockname()[1],
            "abstract": MARK,
            "socket": str(folder / "socket"),
            "pid": outside["victim"].pid,
            "paths": [str(ROOT), str(Path.home()), str(folder), str(folder / "secret.txt"), *installed],
            "secret": "SECRET OF THE ENVIRONMENT",
            "calls": {name: numbers[column] for name, numbers in REFUSED.items() if numbers[column] is not None},
            "clone": [CLONE[column], CLONE3[column]],
        }
    )


@pytest.fixture(scope="module")
def endings(engine: str, outside: dict[str, Any]) -> dict[str, Ended]:
    """Every hostile program, run once, several at a time."""
    os.environ["MERTON_SECRET"] = "SECRET OF THE ENVIRONMENT"
    files = {"around.json": around(outside)}

    def served(line: bytes) -> bytes:
        return json.dumps("x" * 100_000 if line == b'"long"' else "served").encode()

    def run(program: Hostile) -> Ended:
        main = f"{MARK}_{program.name}.py"
        limits = Limits(**{**SMALL, **program.limits})  # type: ignore[arg-type]
        given = {**files, main: HEAD + program.code}
        inputs = {"given": outside["folder"] / "given"}
        return Sandbox(limits, engine).run(given, main, inputs, served if program.serves else None)

    # a descriptor that a careless start would hand on
    with (outside["folder"] / "secret.txt").open() as held, ThreadPoolExecutor(4) as pool:
        os.set_inheritable(held.fileno(), True)
        before = state(outside["folder"])
        ended = dict(zip([program.name for program in ALL], pool.map(run, ALL), strict=True))
    del os.environ["MERTON_SECRET"]
    assert state(outside["folder"]) == before
    return ended


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_a_hostile_program_is_held(program: Hostile, endings: dict[str, Ended]) -> None:
    ended = endings[program.name]
    assert not re.search(r"^OUT.*", ended.stdout, re.MULTILINE), ended.stdout
    assert re.fullmatch(program.reason, ended.reason), (ended.reason, ended.stderr)
    assert "\n" not in ended.reason
    assert (ended.exit_code == 0) == (not program.reason or "It left" in ended.reason or "taken" in ended.reason)
    assert re.search(program.prints, ended.stdout), ended.stdout
    assert max(len(ended.stdout), len(ended.stderr)) <= 1 << 16


def test_nothing_is_left(endings: dict[str, Ended], outside: dict[str, Any]) -> None:
    """No process, no connection, no file, no dead neighbour."""
    assert endings
    assert processes() == []
    assert outside["victim"].poll() is None
    for listener in outside["listeners"]:
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert not list(Path(tempfile.gettempdir()).glob(f"*{MARK}*"))


def test_only_regular_files_come_back(endings: dict[str, Ended]) -> None:
    outputs = endings["strange_outputs"].outputs
    assert outputs["kept"] == b"kept"
    assert set(outputs) == {"hard", "kept"}  # "hard" is a file of its own folder


def test_the_sandbox_ends_with_its_owner(engine: str) -> None:
    """kill -9 of the process that runs it leaves no process."""
    mark = f"{MARK}_orphan"
    code = (
        "from merton_studies.harness.sandbox import Sandbox; "
        f"Sandbox(engine={engine!r}).run({{'{mark}.py': 'import time; time.sleep(600)'}}, '{mark}.py')"
    )
    owner = subprocess.Popen([sys.executable, "-c", code])
    assert until(lambda: bool(processes(mark)))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert until(lambda: not processes(mark))


def test_nothing_begins_when_its_owner_is_gone_already() -> None:
    """The first process waits for a word of the guard, which may have ended while it was made."""
    waiting, word = os.pipe()
    report, theirs = os.pipe()
    os.close(word)
    lines = Path(warden.__file__).read_text(encoding="utf-8")
    moves = f"import os\nos.dup2({waiting}, 108)\nos.dup2({theirs}, 105)\nos.dup2(108, 8)\nos.dup2(105, 5)\n"
    code = f"{moves}exec({lines!r}, {{'__name__': '__main__'}})"
    job = json.dumps({"files": {}, "main": "x.py"})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], input=job, text=True, pass_fds=(waiting, theirs), capture_output=True
    )
    for number in (waiting, theirs):
        os.close(number)
    with open(report, "rb") as file:
        assert file.read() == b""
    assert (done.returncode, done.stderr) == (0, "")


def test_time_is_counted_when_the_owner_ignores_its_children(engine: str) -> None:
    """What a process ignores, every program that it starts ignores: the kernel then forgets the time of children."""
    code = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from merton_studies.harness.sandbox import Limits, Sandbox\n"
        "burn = 'while time.process_time() < 0.1: pass'\n"
        "program = f'import os, time\\nif os.fork() == 0:\\n    {burn}\\nelse:\\n    os.wait()'\n"
        f"ended = Sandbox(Limits(), {engine!r}).run({{'x.py': program}}, 'x.py')\n"
        "print(ended.reason, ended.cpu_s >= 0.1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=stretched(60))
    assert (done.stdout, done.stderr) == (" True\n", "")


def test_a_program_works(engine: str, tmp_path: Path) -> None:
    """Modules beside it, folders, inputs, questions, outputs: what a pipeline needs."""
    (tmp_path / "case.json").write_text('{"question": "how many?"}')
    (tmp_path / "case.json").chmod(0o644)
    tmp_path.chmod(0o700)  # as a home is
    files: dict[str, bytes | str] = {
        "main.py": "import json, tools.more\nfrom asking import ask\nfrom pathlib import Path\n"
        "case = json.load(open('/inputs/case.json'))\n"
        "Path('sub').mkdir()\nPath('sub/answers.json').write_text(json.dumps([ask([case, i]) for i in range(3)]))\n"
        "print('grüße', tools.more.X)",
        "tools/__init__.py": b"",
        "tools/more.py": "X = 7",
    }
    asked = []

    def serve(line: bytes) -> bytes:
        asked.append(json.loads(line))
        return json.dumps(len(asked), indent=1).encode()

    ended = Sandbox(engine=engine).run(files, "main.py", {"case.json": tmp_path / "case.json"}, serve)
    assert (ended.exit_code, ended.reason, ended.stdout) == (0, "", "grüße 7\n")
    assert asked == [[{"question": "how many?"}, i] for i in range(3)]
    assert ended.outputs == {"sub/answers.json": b"[1, 2, 3]"}


def test_what_serve_raises_comes_out(engine: str) -> None:
    def serve(line: bytes) -> bytes:
        raise RuntimeError("the model is gone")

    main = f"{MARK}_asks.py"
    with pytest.raises(RuntimeError, match="the model is gone"):
        Sandbox(engine=engine).run({main: "from asking import ask\nwhile True: ask(1)"}, main, serve=serve)
    assert not processes()


def test_the_time_of_serve_is_not_the_programs(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + late[0]

    def serve(line: bytes) -> bytes:
        late[0] += 1000.0
        return b"1"

    monkeypatch.setattr(guarding, "time", Clock)
    code = "from asking import ask\nprint(ask(1) + ask(2))"
    ended = Sandbox(Limits(wall_s=300.0), engine).run({"main.py": code}, "main.py", serve=serve)
    assert (ended.reason, ended.stdout) == ("", "2\n")
    assert ended.seconds > 2000


def test_the_python_of_merton_serves_where_the_system_has_none(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "system_python", lambda: None)
    code = "import sys, ctypes, sqlite3, ssl\nprint(sys.version.split()[0], sys.prefix)\nimport numpy"
    ended = Sandbox(engine=engine).run({"main.py": code}, "main.py")
    assert ended.stdout == f"{platform.python_version()} /python\n", ended.stderr
    assert ended.reason == "It ended with exit code 1: ModuleNotFoundError: No module named 'numpy'"


def test_concurrent_runs_leave_nothing(engine: str) -> None:
    code = "import os\nif os.fork() == 0:\n    import time\n    time.sleep(600)\nprint(os.getpid())"
    main = f"{MARK}_concurrent.py"
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda _: Sandbox(engine=engine).run({main: code}, main), range(8)))
    assert {(ended.stdout, ended.reason) for ended in ends} == {
        ("2\n", "It left 1 process running, which was ended."),
    }
    assert not processes()


def test_without_an_engine_generated_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engines.plan

    def plan(*arguments: Any) -> dict[str, Any]:
        made = real(*arguments)
        return {**made, "binds": [("/no/such/folder", "/usr")]}

    monkeypatch.setattr(engines, "bubblewrap_path", lambda: None)
    monkeypatch.setattr(engines, "plan", plan)
    sandbox.working_engine.cache_clear()
    with pytest.raises(MissingDependencyError) as raised:
        Sandbox()
    sentence = str(raised.value)
    assert "no sandbox works here, so generated code is refused" in sentence
    for part in ("bubblewrap is not installed", "the sandbox by namespaces does not work here: sandbox: ", "sudo "):
        assert part in sentence
    assert "\n" not in sentence
    text = commands.sandbox_engine()
    assert text == f"none, needed by `merton curate evaluate` alone: {sentence}"
    sandbox.working_engine.cache_clear()


@pytest.mark.parametrize(
    ("files", "main", "inputs", "sentence"),
    [
        ({"../x.py": ""}, "../x.py", {}, "'../x.py' is no name of a file"),
        ({"/x.py": ""}, "/x.py", {}, "'/x.py' is no name of a file"),
        ({"x.py": ""}, "main.py", {}, "the program 'main.py' is not among the files given: x.py"),
        ({"x.py": ""}, "x.py", {"a": Path("/no/such")}, "the input 'a' of a sandbox does not exist: /no/such"),
        ({"x.py": ""}, "x.py", {"../a": Path("/usr")}, "'../a' is no name of a file"),
    ],
)
def test_wrong_use_is_one_sentence(files: Any, main: str, inputs: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        Sandbox(engine="namespaces").run(files, main, inputs)


def test_wrong_settings_are_one_sentence() -> None:
    with pytest.raises(InputError, match="the limit memory of a sandbox is 0; it must be above 0"):
        Limits(memory=0)
    with pytest.raises(InputError, match="unknown engine 'docker' of a sandbox; choose one of: bubblewrap, namespaces"):
        Sandbox(engine="docker")
    with pytest.raises(InputError, match="no filter of system calls for 'riscv64'; there is one for: x86_64, aarch64"):
        seccomp_filter("riscv64")


def test_the_filter_refuses_by_name_on_both_machines() -> None:
    """Numbers are those of the kernel's headers, where these are installed."""
    headers = {
        "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        "aarch64": Path("/usr/include/asm-generic/unistd.h"),
    }
    named = {**REFUSED, "clone": CLONE, "clone3": CLONE3}
    for column, (machine, header) in enumerate(headers.items()):
        assert len(seccomp_filter(machine)) % 8 == 0
        if header.is_file():
            found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
            numbers = {name: int(number) for name, number in found}
            wrong = {name for name, own in named.items() if own[column] != numbers.get(name, own[column])}
            assert not wrong
