"""The list of nodes with their parameters and remappings: one source for `ros2 launch` and for `merton up`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from ruamel.yaml import YAML

from merton.config import Model, load
from merton.errors import InputError, UnknownNameError
from merton.files import resource

ParameterValue = bool | int | float | str | tuple[str, ...]


class NodeSpec(Model):
    """One process.

    Attributes:
        name: name of the node, as its program gives it.
        package, executable: as `ros2 run` takes them.
        remappings: the node's own topic names to those of this graph.
        parameters: values on top of the graph's parameter file.
        extra: the extra (`merton.extras`) without which it cannot start; "" for none.
    """

    name: str
    package: str = "merton_nodes"
    executable: str
    remappings: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, ParameterValue] = Field(default_factory=dict)
    extra: Literal["", "sim", "lab", "recording", "serve"] = ""

    def with_parameters(self, **changes: ParameterValue) -> NodeSpec:
        """This node with other values of some parameters."""
        return self.model_copy(update={"parameters": {**self.parameters, **changes}})


class GraphSpec(Model):
    """A graph, as `config/graph/<name>.yaml` describes it.

    Attributes:
        description: one line for people.
        parameters: the ROS parameter file, relative to `config`.
        nodes: the processes, in the order they are started.
        arguments: names that a launch file or `merton up` may set, to the parameter ("node.parameter") they set, or
            several of them, with commas between.
        help: description of each argument, for `--show-args`.
        optional: processes that are started only if an argument sets one of their parameters; the graph can do without
            them, so their end ends nothing.
    """

    description: str
    parameters: str
    nodes: Annotated[tuple[NodeSpec, ...], Field(min_length=1)]
    arguments: dict[str, str] = Field(default_factory=dict)
    help: dict[str, str] = Field(default_factory=dict)
    optional: tuple[NodeSpec, ...] = ()

    def can_do_without(self, name: str) -> bool:
        """Whether the end of the process `name` leaves the others to go on."""
        return any(node.name == name for node in self.optional)

    def that_needs(self, name: str) -> GraphSpec:
        """The graph for which the end of the process `name` is the end, though it was optional."""
        return self.model_copy(update={"optional": tuple(node for node in self.optional if node.name != name)})

    def beside(self, *processes: NodeSpec) -> GraphSpec:
        """The graph with further processes, started last, that it can do without."""
        return self.model_copy(update={"nodes": (*self.nodes, *processes), "optional": (*self.optional, *processes)})

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras that its processes and their parameters need, each once."""
        values = [str(value) for node in self.nodes for value in node.parameters.values()]
        of_values = ["postgres"] if any(value.startswith("postgresql://") for value in values) else []
        return tuple(dict.fromkeys([*(node.extra for node in self.nodes if node.extra), *of_values]))

    @property
    def parameter_file(self) -> Path:
        """Absolute path of the parameter file."""
        return resource("merton_bringup", f"config/{self.parameters}")

    def with_arguments(self, values: dict[str, str]) -> GraphSpec:
        """The graph with arguments put in, each of the type that its parameter has in the parameter file.

        Raises UnknownNameError for an argument the graph does not have, InputError for a text that is not of that type.
        """
        nodes = {node.name: node for node in self.nodes}
        defaults = YAML(typ="safe", pure=True).load(self.parameter_file)
        for argument, value in values.items():
            if argument not in self.arguments:
                raise UnknownNameError("argument", argument, self.arguments)
            for target in self.arguments[argument].split(", "):
                node, _, parameter = target.partition(".")
                if node not in nodes:  # first: it is to record the start of the others
                    nodes = {node: next(spec for spec in self.optional if spec.name == node), **nodes}
                kind = type(defaults[f"/**/{node}"]["ros__parameters"][parameter])  # in any namespace
                nodes[node] = nodes[node].with_parameters(**{parameter: _typed(argument, value, kind)})
        return self.model_copy(update={"nodes": tuple(nodes.values())})

    def with_models(self, models: Mapping[str, Sequence[str]]) -> GraphSpec:
        """The graph whose nodes load these models while they start, by the node's name, beside no others."""
        nodes = (
            node.with_parameters(preload=tuple(models[node.name])) if node.name in models else node
            for node in self.nodes
        )
        return self.model_copy(update={"nodes": tuple(nodes)})


def graph_names() -> list[str]:
    """Names of the graphs in `config/graph`, sorted."""
    return sorted(file.stem for file in resource("merton_bringup", "config/graph").glob("*.yaml"))


def load_graph(name: str) -> GraphSpec:
    """The graph called `name`; raises UnknownNameError with the graphs there are."""
    if name not in graph_names():
        raise UnknownNameError("graph", name, graph_names())
    return load(resource("merton_bringup", f"config/graph/{name}.yaml"), GraphSpec)


def _typed(argument: str, text: str, kind: type) -> bool | int | float | str:
    """A command line's text as a value of type `kind`."""
    try:
        value: bool | int | float | str = {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise InputError(f"the argument {argument} must be {wanted}, got {text!r}") from None
    return value
