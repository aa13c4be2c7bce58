"""Runs code that an agent wrote, shut in: no network, no home, read-only system and inputs, limits for everything.

A2Eval, section 3.2, runs synthesised pipelines "in a sandbox" and says no more; what holds here is ours and is
measured by `tests/studies/harness/test_sandbox.py`. docs/studies/sandbox.md has what it keeps out, and what not.
"""

from __future__ import annotations

import base64
import json
import marshal
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from merton.errors import InputError, MissingDependencyError
from merton_studies.harness.confinement import asking, engines
from merton_studies.harness.confinement.guarding import Guard, Serve
from merton_studies.harness.confinement.limits import Ended, Limits
from merton_studies.harness.confinement.reasons import ended
from merton_studies.harness.confinement.seccomp import seccomp_filter

__all__ = ["Ended", "Limits", "Sandbox", "Serve", "working_engine"]


class Sandbox:
    """Runs programs shut in. One object may serve many threads.

    Args:
        limits: of every run.
        engine: one of `engines.ENGINES`; None takes the first that works on this machine.

    Raises:
        InputError: the engine has no such name.
        MissingDependencyError: no engine works here; the sentence says why, and the remedy.
    """

    def __init__(self, limits: Limits | None = None, engine: str | None = None) -> None:
        if engine is not None and engine not in engines.ENGINES:
            raise InputError(f"unknown engine {engine!r} of a sandbox; choose one of: {', '.join(engines.ENGINES)}")
        self.limits = limits or Limits()
        self.engine = working_engine() if engine is None else engine

    def run(
        self,
        files: Mapping[str, bytes | str],
        main: str,
        inputs: Mapping[str, Path] | None = None,
        serve: Serve | None = None,
    ) -> Ended:
        """Run a program of Python with nothing but the standard library.

        Args:
            files: the program: path relative to its folder, and content. The folder is on its import path.
            main: the one of them that is run. Its working folder is the empty output folder.
            inputs: files and folders of this machine that it may read, as /inputs/NAME.
            serve: answers what the program asks with `from asking import ask; ask(value)`: gets one line of JSON, gives
                one. Called in the thread of the caller, one after the other; lines that are no JSON never reach it.

        Raises:
            InputError: a name leads out of its folder, `main` is not among the files, or an input does not exist.
            MissingDependencyError: the engine does not work here.
            Exception: any that `serve` raises; the program has been ended then.
        """
        for name in files:
            engines.check_name(name)
        if main not in files:
            raise InputError(f"the program {main!r} is not among the files given: {', '.join(files) or 'none'}")
        view = engines.inside(engines.system_python())
        mounts = engines.check_inputs(inputs or {})
        job = self._job(view, files, main, serve is not None)
        with ExitStack() as stack:
            guard = self._start(stack, view, job, mounts, serve is not None)
            guard.watch(serve)
        return ended(guard, self.limits, self.engine)

    def _job(self, view: engines.Inside, files: Mapping[str, bytes | str], main: str, serves: bool) -> bytes:
        """The job of the warden, as JSON."""
        limits = self.limits
        given = dict(files)
        if serves:
            given["asking.py"] = Path(asking.__file__).read_bytes()
        content = {name: data.encode() if isinstance(data, str) else data for name, data in given.items()}
        caps = {
            "RLIMIT_AS": limits.memory,
            "RLIMIT_NPROC": limits.processes + 1,  # the warden counts
            "RLIMIT_FSIZE": limits.file_size,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_CORE": 0,
            "RLIMIT_MEMLOCK": 0,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_RTPRIO": 0,
            "RLIMIT_NICE": 0,
        }
        seconds = math.ceil(limits.cpu_s)  # of each process; the guard looks at all together
        job = {
            "files": {name: base64.b64encode(data).decode() for name, data in content.items()},
            "main": main,
            "serves": serves,
            "python": view.python,
            "environ": view.environ,
            "limits": [*([n, v, v] for n, v in caps.items()), ["RLIMIT_CPU", seconds, seconds + 1]],
            "most_bytes": limits.room,
            "most_files": limits.files,
        }
        return json.dumps(job).encode()

    def _start(
        self, stack: ExitStack, view: engines.Inside, job: bytes, mounts: list[tuple[str, str]], serves: bool
    ) -> Guard:
        """The guard of a started launcher; descriptors are closed with `stack`."""
        theirs: dict[str, int] = {}
        ours: dict[str, int] = {}
        with ExitStack() as handed_over:
            for name in ("info", "report", "out", "err", "go", *(("ask", "reply") if serves else ())):
                reading, writing = os.pipe()
                ours[name], theirs[name] = (writing, reading) if name in ("go", "reply") else (reading, writing)
                stack.callback(os.close, ours[name])
                handed_over.callback(os.close, theirs[name])
            job_file = _in_memory("job", job)
            handed_over.callback(os.close, job_file)
            theirs["filter"] = _in_memory("filter", seccomp_filter())
            handed_over.callback(os.close, theirs["filter"])
            stdout, stderr = theirs.pop("out"), theirs.pop("err")
            passed = {**theirs, "held": ours["info"]}
            plan = engines.plan(self.engine, view, mounts, passed, self.limits.room, self.limits.files)
            plan_file = _in_memory("plan", marshal.dumps(plan))
            handed_over.callback(os.close, plan_file)
            launcher = str(Path(engines.__file__).with_name("launcher.py"))
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", launcher, str(plan_file)],
                stdin=job_file,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(plan_file, *passed.values()),
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                cwd="/",
                start_new_session=True,  # Ctrl-C is for Merton, which ends it in order
            )
        return Guard(process, ours, self.limits)


def _in_memory(name: str, content: bytes) -> int:
    """A descriptor of an anonymous file with this content, read from its beginning."""
    number = os.memfd_create(name)
    with open(number, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


@lru_cache(maxsize=1)
def working_engine() -> str:
    """The first engine that works on this machine, tried once a process (a tenth of a second).

    Raises:
        MissingDependencyError: none works; the sentence says why, and the remedy.
    """
    failures = []
    for engine in engines.ENGINES:
        try:
            run = Sandbox(Limits(wall_s=20), engine).run({"main.py": "import json, ctypes, statistics"}, "main.py")
        except MissingDependencyError as error:
            failures.append(str(error))
            continue
        if not run.reason:
            return engine
        failures.append(f"{engine}: {run.reason}")
    why = "; ".join(failures)
    raise MissingDependencyError(f"no sandbox works here, so generated code is refused ({why}); {engines.remedy()}")
