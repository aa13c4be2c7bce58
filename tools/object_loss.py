"""Which measures tell a lost block on the object from one beside it: python tools/object_loss.py --scenes 100.

Prints a row for each in Markdown: the share of pairs in which the loss on the object is rated worse, with its 95 %
interval over scenes. A measure that does not know where the object is stands at 50 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from merton.experiment.local import LocalPorts
from merton_studies.iqa.gate_run import usable_metrics
from merton_studies.iqa.object_loss import compare

POLICIES = ("glance", "gist")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=100)
    chosen = parser.parse_args(arguments)
    with LocalPorts() as ports:
        told = compare(ports, chosen.scenes, usable_metrics(), POLICIES)
    print("| measure | on the object rated worse | 95 % | pairs |\n|---|---|---|---|")
    for row in told:
        low, high = row.interval
        print(f"| {row.name} | {100 * row.share:.0f} % | {100 * low:.0f} to {100 * high:.0f} % | {row.pairs} |")


if __name__ == "__main__":
    main()
