"""The catalogue of metrics that are code of others, or a lab's own: config/catalogue/iqa.yaml, and files like it."""

from __future__ import annotations

from typing import ClassVar, Literal

from merton.models.catalogue import AdapterClass, Catalogue, CatalogueEntry
from merton.perception.quality.metric import Group, Measure, Metric


class MetricEntry(CatalogueEntry):
    """One metric.

    Attributes:
        needs_reference: whether it compares with an undistorted image.
        better: whether a "higher" or a "lower" value means a better image.
        range: smallest and largest value, as its authors give them.
        group: "zero_shot" with weights as its authors give them; "full_reference" or "no_reference" if it was trained
            on opinions of robots.
    """

    adapters: ClassVar = {"pyiqa": AdapterClass(path="merton.perception.quality.remote:PyIqaMetric", extra="remote")}

    needs_reference: bool
    better: Literal["higher", "lower"]
    range: tuple[float, float]
    group: Group = "zero_shot"

    def metric(self) -> Metric:
        """The entry in the form of the registry."""
        return Metric(
            self.name,
            self.better,
            self.range,
            self.needs_reference,
            1,
            self.description,
            self.source,
            self._measure,
            self.group,
            self.licence,
            self.paper,
            self.extra,
        )

    def _measure(self) -> Measure:
        built = self.build()
        return built  # type: ignore[return-value]  # an adapter of metrics is called with image and reference


CATALOGUE = Catalogue("iqa", MetricEntry)
"""Name to entry, read on first use."""
