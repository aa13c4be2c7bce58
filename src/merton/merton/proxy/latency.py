"""The time that the proxy adds to an observation."""

from __future__ import annotations

from array import array

import numpy as np


class Latency:
    """The proxy's own time for each observation: from the first byte of a message until it has been passed on.

    That of the observation and of its answer together, without the time of the policy. The time that a distortion
    takes, with decoding and encoding of the picture, is kept apart.
    """

    def __init__(self) -> None:
        self._added_s, self._distorting_s = array("d"), array("d")

    def add(self, added_s: float, distorting_s: float) -> None:
        """Of one observation; `distorting_s` is no part of `added_s`, and 0 where nothing was distorted."""
        self._added_s.append(added_s)
        if distorting_s:
            self._distorting_s.append(distorting_s)

    def summary(self) -> dict[str, float | int | None]:
        """p50_ms, p99_ms, n of all; distorting_p50_ms, distorting_p99_ms, distorted of the distorted; None for none."""
        found: dict[str, float | int | None] = {}
        for name, count, values in (("", "n", self._added_s), ("distorting_", "distorted", self._distorting_s)):
            quantiles = np.quantile(values, (0.5, 0.99)) if values else (None, None)
            for part, value in zip(("p50_ms", "p99_ms"), quantiles, strict=True):
                found[name + part] = None if value is None else round(1000 * float(value), 3)
            found[count] = len(values)
        return found
