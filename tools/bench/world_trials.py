"""Where the time of a trial goes in any world: reset, physics, pictures, policy, and the rest, which is Merton.

    .venv/bin/python tools/bench/world_trials.py EXPERIMENT.yaml [--trials 8]

The first trials of an experiment, in one process and its world's, after one that is not counted. `pictures_each_step`
is what pictures of all its cameras at every step of the physics would have cost. Seconds a trial. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from merton.config import load
from merton.experiment.local import ports_of
from merton.experiment.plan import ExperimentSpec
from merton.experiment.runner import Runner

OF_WORLD = {"reset": "reset", "look": "pictures", "carry_out": "physics"}
OF_PORTS = {"act": "policy", "answer": "answers"}
"""Methods of a world and of its ports, and the part of a trial that they are."""


class Stopwatch:
    """Seconds and calls by part, of methods that are replaced by timed ones."""

    def __init__(self) -> None:
        self.seconds, self.calls, self.rows = Counter[str](), Counter[str](), 0

    def watch(self, owner: Any, parts: Mapping[str, str]) -> None:
        """Time methods of an object, which are parts of a trial."""
        for method, part in parts.items():
            setattr(owner, method, self._timed(getattr(owner, method), part))

    def _timed(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds[part] += time.perf_counter() - began_s
                self.calls[part] += 1
                if part == "physics":
                    self.rows += len(arguments[0].deltas)

        return timed


def main() -> None:
    """Run the trials and print where their time went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--trials", type=int, default=8)
    arguments = parser.parse_args()
    spec = load(arguments.experiment, ExperimentSpec)
    runner = Runner(spec, "bench", ports_of(spec.world, spec.facts.description))
    trials = [trial for trial in spec.trials() if trial.case.is_reference][: arguments.trials]
    runner.run(trials[0])
    watch = Stopwatch()
    watch.watch(runner.ports.world, OF_WORLD)  # type: ignore[attr-defined]
    watch.watch(runner.ports, OF_PORTS)
    began_s, successes = time.perf_counter(), 0
    for trial in trials:
        successes += runner.run(trial).record.success is True
    took_s = time.perf_counter() - began_s
    watch.seconds["merton"] = took_s - sum(watch.seconds.values())
    cameras = len(runner.ports.world.camera_names)  # type: ignore[attr-defined]
    picture_s = watch.seconds["pictures"] / max(watch.calls["pictures"], 1)
    result = {
        "world": spec.world,
        "trials": len(trials),
        "successes": successes,
        "trial_s": took_s / len(trials),
        **{f"{part}_s": seconds / len(trials) for part, seconds in watch.seconds.items()},
        "pictures": watch.calls["pictures"] / len(trials),
        "rows": watch.rows / len(trials),
        "pictures_each_step_s": picture_s * cameras * watch.rows / len(trials),
    }
    print(json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in result.items()}))


if __name__ == "__main__":
    main()
