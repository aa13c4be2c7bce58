"""The taxonomy of Embodied Arena: core capabilities with fine dimensions, core tasks with benchmarks."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from merton.config import Model, load
from merton.files import resource


class Capability(Model):
    """A core capability and its fine dimensions."""

    name: str
    dimensions: tuple[str, ...]


class Benchmark(Model):
    """A benchmark: its metrics and fine dimensions; `source`: its page on the platform, or ours."""

    name: str
    metrics: tuple[str, ...]
    dimensions: tuple[str, ...]
    source: Literal["page", "ours"]


class Task(Model):
    """A core task and its benchmarks."""

    name: str
    benchmarks: tuple[Benchmark, ...]


class Taxonomy(Model):
    """Capabilities, tasks and metrics of the boards; `metrics` describes how each metric is mapped to 0..1."""

    metrics: dict[str, str]
    capabilities: tuple[Capability, ...]
    tasks: tuple[Task, ...]

    @model_validator(mode="after")
    def _names_exist_once(self) -> Taxonomy:
        for kind, names in (
            ("dimension", self.dimensions),
            ("capability", tuple(item.name for item in self.capabilities)),
            ("benchmark", tuple(item.name for item in self.benchmarks)),
            ("task", tuple(item.name for item in self.tasks)),
        ):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"the {kind} {twice!r} stands twice")
        for benchmark in self.benchmarks:
            for name, known, kind in (
                *((name, self.dimensions, "dimension") for name in benchmark.dimensions),
                *((name, tuple(self.metrics), "metric") for name in benchmark.metrics),
            ):
                if name not in known:
                    raise ValueError(f"{benchmark.name}: unknown {kind} {name!r}; choose from: {', '.join(known)}")
        return self

    @property
    def dimensions(self) -> tuple[str, ...]:
        """All fine dimensions, capability by capability."""
        return tuple(name for capability in self.capabilities for name in capability.dimensions)

    @property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """All benchmarks, task by task."""
        return tuple(benchmark for task in self.tasks for benchmark in task.benchmarks)

    def scale(self, benchmark: str) -> str:
        """Mapping of the metrics of a benchmark to 0..1, for an error message; empty if it is unknown."""
        for entry in self.benchmarks:
            if entry.name == benchmark:
                return " (" + "; ".join(f"{name}: {self.metrics[name]}" for name in entry.metrics) + ")"
        return ""


def load_taxonomy() -> Taxonomy:
    """The taxonomy in config/leaderboards/embodied_arena.yaml: 7 core capabilities, 25 dimensions, 22 benchmarks."""
    return load(resource("merton_bringup", "config/leaderboards/embodied_arena.yaml"), Taxonomy)
