"""Trials a second by the number of workers without ROS, and on a Ray cluster, with workers killed, and their parts.

    python tools/bench/scale_bench.py [SCENES [WORKERS ...]] > scale.json

The experiment is of four agents that cost little, two tasks and four distortions: 40 trials a scene, and 50 scenes are
2,000 trials (some ten minutes in all on two idle cores). There is a run with one worker, one with each number of
WORKERS (2, unless said), and one with two actors of Ray; in all but the first a worker is killed. Every run must leave
the record and the files of the first, to the byte, or the script fails. Wall times depend on all that the machine does
meanwhile, whose load is printed; processor times less so. Ray is left out where it is not installed, with a line on
standard error.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from merton.errors import MissingDependencyError
from merton.experiment import workers
from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.experiment.workers import BATCH, Made, complete
from merton.files import write_file
from merton.pool import Engine, LocalEngine, Pool, Shared, open_pool
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore

SCENES = 2
"""In `make bench`."""
EXPERIMENT = """
name: scale
description: Four agents that cost little; 40 trials a scene of both tasks together.
seed: 20
agents:
  - {{id: oracle, vla: oracle}}
  - {{id: glance, vla: glance}}
  - {{id: plunge, vla: plunge}}
  - {{id: hold, vla: hold}}
tasks: [reach, press]
distortions: [gaussian_blur, jpeg, white_noise, mean_darken]
levels: [0, 5]
scenes: {scenes}
max_steps: 1
"""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure(scenes: int, together: Sequence[int]) -> dict[str, Any]:
    """All figures, with one worker and with each number of them; raises AssertionError if two runs differ."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scale.yaml"
        file.write_text(EXPERIMENT.format(scenes=scenes))
        alone = run(Path(folder), "workers_1", 1, LocalEngine())
        result: dict[str, Any] = {"workers_1": alone}
        for number in together:
            found = run(Path(folder), f"workers_{number}", number, LocalEngine(), kill=True)
            found["wall_efficiency"] = found["trials_per_s"] / alone["trials_per_s"] / number
            found["processor_efficiency"] = alone["worker_cpu_ms_a_trial"] / found["worker_cpu_ms_a_trial"]
            result[f"workers_{number}"] = found
        try:
            from merton.cluster import RayEngine

            result["ray_2_actors"] = run(Path(folder), "ray_2_actors", 2, RayEngine(2), kill=True)
        except MissingDependencyError as error:
            print(f"ray_2_actors is left out: {error}", file=sys.stderr)
        runs = [content(Path(folder) / "runs" / name) for name in result]
        assert all(other == runs[0] for other in runs), "the runs differ"
        result["bytes_a_trial"] = sizes(Path(folder) / "runs" / "workers_1")
        result["driver"] = driver(Path(folder), result["bytes_a_trial"], 10 * scenes)
        result["files"] = files(Path(folder), result["bytes_a_trial"])
        result["record"] = record(Path(folder))
        result["cider_barrier"] = corpora((1_000, 10_000, 100_000) if scenes > SCENES else (1_000,))
        result["rating"] = rating((1_000, 10_000, 100_000) if scenes > SCENES else (1_000,))
    return result


def run(folder: Path, name: str, workers: int, engine: Engine, kill: bool = False) -> dict[str, Any]:
    """One run, in which perhaps a worker is killed by kill -9 after a third of the trials.

    Trials a second are those from the first to the last result: it takes seconds until a process has its cell. The
    processor time of workers is read from /proc, of the driver from its own clock.
    """
    directory = RunDirectory.create(folder / "runs", folder / "scale.yaml", name)
    faults: list[str] = []
    killed_s, load, own_s, started_s, first_s = 0.0, os.getloadavg()[0], time.process_time(), time.monotonic(), 0.0
    with ResultStore(directory.database) as store, open_pool(workers, engine, faults.append) as pool:
        for done, total in complete(pool, directory, store):
            first_s = first_s or time.monotonic()
            if kill and done == total // 3:
                killed_s = processor_s(pool.hosts[0].pid)
                os.kill(pool.hosts[0].pid, signal.SIGKILL)
        ended_s, used_s = time.monotonic(), killed_s + used(pool)
    if kill:
        assert len(faults) == 1, faults
    return {
        "trials": total,
        "workers_killed": len(faults),
        "wall_s": ended_s - started_s,
        "start_s": first_s - started_s,
        "trials_per_s": (total - 1) / (ended_s - first_s),
        "worker_cpu_ms_a_trial": 1e3 * used_s / total,
        "driver_cpu_ms_a_trial": 1e3 * (time.process_time() - own_s) / total,
        "cores_used": used_s / (ended_s - started_s),
        "load_before": load,
        "load_after": os.getloadavg()[0],
    }


def used(pool: Pool) -> float:
    """Processor time of a pool's workers that live [s]."""
    return sum(processor_s(place.pid) for place in pool.hosts if Path(f"/proc/{place.pid}").exists())


def processor_s(pid: int) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def content(run: Path) -> dict[str, Any]:
    """Rows of the record in their order, and hashes of all files of trials; without wall times and the run's name."""
    found: dict[str, Any] = {}
    with sqlite3.connect(run / "results.sqlite") as database:
        for table in ("agents", "cases", "trials"):
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            names = ", ".join(f'"{name}"' for name in columns if name not in ("experiment", "wall_s"))
            found[table] = list(database.execute(f"select {names} from {table}"))
    for file in sorted([*run.glob("trials/*/*"), *run.glob("references/*/*")]):
        data = file.read_bytes()
        if file.suffix == ".json":
            data = json.dumps({**json.loads(data), "wall_s": 0}).encode()
        found[str(file.relative_to(run))] = hashlib.sha256(data).hexdigest()
    return found


def sizes(run: Path) -> dict[str, float]:
    """Mean bytes of a trial: pictures, trial.json, row of the record; and of its result as it goes to the driver."""
    folders = sorted((run / "trials").iterdir())
    contents = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders]
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = {record.id: record for record in store.records()}
    made = [Made(records[folder.name], files, ()) for folder, files in zip(folders, contents, strict=True)]
    return {
        "pictures": _mean(sum(len(data) for name, data in files.items() if name != "trial.json") for files in contents),
        "trial_json": _mean(len(files["trial.json"]) for files in contents),
        "record": (run / "results.sqlite").stat().st_size / len(folders),
        "result": _mean(len(pickle.dumps(one)) for one in made),
    }


def driver(folder: Path, sizes: dict[str, float], trials: int) -> dict[str, float]:
    """The process that deals and records, alone: trials of two workers cost nothing, their results are of real size."""
    directory = RunDirectory.create(folder / "runs", folder / "scale.yaml", "driver")
    shape = (int(sizes["pictures"]), int(sizes["trial_json"] / 54))
    work, workers.run_trial_here = workers.run_trial_here, partial(free, shape)
    try:
        with ResultStore(directory.database) as store, open_pool(2) as pool:
            found = complete(pool, directory, store)
            next(found)
            cpu_s, started_s = time.process_time(), time.perf_counter()
            done = sum(1 for _ in islice(found, trials))
            used_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - started_s
    finally:
        workers.run_trial_here = work
    return {"cpu_ms_a_trial": 1e3 * used_s / done, "trials_per_s": done / wall_s}


def free(shape: tuple[int, int], shared: Shared, trial: Trial, *_: object) -> Made:
    """A trial that is not run: its pictures have so many bytes, and its path so many points (54 bytes each)."""
    setting = shared.get()
    details = {"answers": {"reference": "a cube"}, "success": True, "final_tcp": [[0.0] * 4] * 4}
    text = json.dumps({**details, "path": [[0.12345] * 3] * shape[1]}, indent=1)
    record = TrialRecord(setting.run, trial.agent.id, trial.case, Outcome.SUCCESS, 0.5, 0.5, 100.0, 0.0)
    return Made(record, {"00.jpg": bytes(shape[0]), "trial.json": text.encode()}, ())


def files(folder: Path, sizes: dict[str, float]) -> dict[str, float]:
    """Trials whose files are written a second, durable, as `RunDirectory.save_files` does, by one thread and eight."""
    picture, details = bytes(int(sizes["pictures"] / 2)), bytes(int(sizes["trial_json"]))

    def write(number: int) -> None:
        own = folder / "files" / str(number)
        own.mkdir(parents=True)
        for name in ("a.jpg", "b.jpg"):
            (own / name).write_bytes(picture)
        write_file(own / "trial.json", details)

    result = {}
    for threads, numbers in ((1, range(200)), (8, range(200, 1000))):
        with ThreadPoolExecutor(threads) as pool:
            result[f"trials_per_s_{threads}_threads"] = len(numbers) / _wall(
                lambda p=pool, n=numbers: [*p.map(write, n)]
            )
    return result


def record(folder: Path) -> dict[str, float]:
    """Rows a second, each transaction durable, by rows in a transaction; and processor milliseconds of a row."""
    records = [made_up(number, "hold") for number in range(10 * BATCH + 200)]
    result = {}
    with ResultStore(folder / "record.sqlite") as store:
        store.record(records.pop())
        for size, many in ((1, 100), (8, 96), (BATCH, 6 * BATCH)):
            chunks = [[records.pop() for _ in range(size)] for _ in range(many // size)]
            cpu_s = time.process_time()
            result[f"rows_per_s_{size}_at_once"] = many / _wall(lambda c=chunks: [store.record_all(one) for one in c])
            result[f"cpu_ms_a_row_{size}_at_once"] = 1e3 * (time.process_time() - cpu_s) / many
    return result


def corpora(scenes: tuple[int, ...]) -> dict[str, float]:
    """Before the first distorted trial of a VLM: its corpus to a worker, and CIDEr's frequencies in it there.

    Bytes, and milliseconds of processor time; `score_ms` is that of one trial after that.
    """
    from merton.cognition.text import Cider

    Cider(("one", "two")).score("one", "two")  # what is compiled and loaded once is not counted
    sentence = "the red cube is near the left edge lower the gripper close it and lift"
    words = sentence.split()
    result = {}
    for many in scenes:
        corpus = tuple(f"{' '.join(words[n % 7 :])} {n}" for n in range(many))
        packed = pickle.dumps(corpus)
        result[f"bytes_{many}"] = len(packed)
        result[f"unpack_ms_{many}"] = 1e3 * _processor(lambda data=packed: pickle.loads(data))
        made: list[Cider] = []
        result[f"frequencies_ms_{many}"] = 1e3 * _processor(lambda c=corpus, m=made: m.append(Cider(c)))
        result[f"score_ms_{many}"] = 1e3 * _processor(lambda m=made, c=corpus: m[0].score(c[1], c[2]))
    return result


def rating(trials: tuple[int, ...]) -> dict[str, float]:
    """Processor seconds of the board with both ratings of a run of four agents, by its trials."""
    from merton.leaderboard.snapshot import store as snapshot

    snapshot.of_trials([made_up(n // 4, "hold" if n % 2 else "oracle") for n in range(40)])
    agents = ("oracle", "glance", "plunge", "hold")
    return {
        f"seconds_{many}": _processor(
            lambda m=many: snapshot.of_trials([made_up(n // 4, agents[n % 4]) for n in range(m)])
        )
        for many in trials
    }


def made_up(number: int, agent: str) -> TrialRecord:
    """A record whose success depends on agent and number, not only on one of them."""
    case = TestCase("reach", number // 5, "jpeg" if number % 5 else "reference", number % 5)
    success = (number * 7 + len(agent) * 3) % 11 < len(agent)
    outcome = Outcome.SUCCESS if success else Outcome.FAILURE
    return TrialRecord("scale", agent, case, outcome, 0.5, 0.5, 100.0 if success else 70.0, 0.0 if success else 0.3)


def _mean(values: Any) -> float:
    found = list(values)
    return sum(found) / len(found)


def _wall(work: Callable[[], Any]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def _processor(work: Callable[[], Any]) -> float:
    started_s = time.process_time()
    work()
    return time.process_time() - started_s


if __name__ == "__main__":
    scenes, *together = map(int, sys.argv[1:] or [SCENES])
    with redirect_stdout(sys.stderr):  # Ray prints there
        figures = measure(scenes, together or [2])
    print(json.dumps(figures, indent=1))
