"""`merton monitor`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from merton.cli.tree import needs
from merton.graph.supervisor import enclave, environment, find_executable


@needs("serve")
def monitor_command(
    host: Annotated[str, typer.Option(help="Where to listen. Beyond loopback --tokens is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and says which.")] = 8090,
    tokens: Annotated[
        Path | None, typer.Option(help="File of users who may view and press; see docs/lab/monitor.md.")
    ] = None,
    name: Annotated[list[str] | None, typer.Option(help="A further host name of the page.")] = None,
    log: Annotated[Path | None, typer.Option(help="File that takes every press.")] = None,
) -> None:
    """Show the operator's page for the graph in this ROS domain until Ctrl-C: images, arm, stop button, scores."""
    from merton.monitor.server import known_tokens

    known_tokens(host, tokens, name or ())  # reports a mistake before anything starts
    parameters: dict[str, Any] = {"host": host, "port": port, "names": name}
    parameters |= {"tokens": tokens and str(tokens.resolve()), "log": log and str(log.resolve())}
    program = str(find_executable("merton_nodes", "monitor_node"))
    arguments = [program, "--ros-args", *enclave("monitor_node")]
    for key, value in parameters.items():
        if value is not None and value != []:
            arguments += ["-p", f"{key}:={json.dumps(value)}"]  # rcl reads YAML, of which JSON is a part
    os.execve(program, arguments, environment())  # its signals, its exit code
