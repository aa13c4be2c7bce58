"""Numbers of docs/studies/quality.md that follow from the sample of pictures and trials that comes with Merton.

The form of a row and its faults are tested in `test_page_numbers.py`.
"""

from __future__ import annotations

from functools import partial

import pytest
import sample_numbers as sample
from page_numbers import Sentence

QUALITY = "docs/studies/quality.md"

SENTENCES = (
    Sentence(
        QUALITY, "{pictures:,} distorted pictures: {references} references ({scenes} scenes each of", sample.sizes
    ),
    Sentence(QUALITY, "Subjects are {vlms:w} VLMs (`gaze`", sample.sizes),
    Sentence(QUALITY, "and {policies:w} policies (`glance`", sample.sizes),
    Sentence(
        QUALITY, "the scores ({scores:.1f} MB) and the types, levels, seeds and hashes ({keys:.1f} MB)", sample.sizes
    ),
    *(
        Sentence(
            QUALITY,
            f"| {title} | {{pair:~.2f}} | {{reference:~.2f}} | {{type:~.2f}} | {{subject:~.2f}} |",
            partial(sample.by_split, row),
        )
        for title, row in (
            ("level alone", sample.LEVEL),
            ("mean per type and level, which needs no image", sample.CELLS),
            ("the same with the reference's own mean", sample.WITH_REFERENCE),
            ("half of the subjects against the other half", sample.CEILING),
        )
    ),
    Sentence(QUALITY, "the floor that knows the reference by {gap:~.2f};", sample.leak),
    Sentence(
        QUALITY,
        "Halves of the {subjects:w} subjects agree to {mean:~.2f} (over their {divisions:w} divisions {least:~.2f} to "
        "{most:~.2f}), so no metric can be expected above {ceiling:~.2f}",
        sample.agreement,
    ),
    Sentence(
        QUALITY, "the mean per type and level {cells:~.2f}, halves {halves:~.2f}; `merton-fr`", sample.on_cognition
    ),
    Sentence(
        QUALITY,
        "| {none:~.3f} | {monitor:~.3f} | {images:~.3f} | {nr:~.3f} | {brisque:~.3f} | {blur:~.3f} | {psnr:~.3f} |",
        sample.gate_areas,
    ),
    Sentence(
        QUALITY,
        "| failures avoided at 90, 80, 70 % coverage "
        "| {none_90:.0f}, {none_80:.0f}, {none_70:.0f} % "
        "| {monitor_90:.0f}, {monitor_80:.0f}, {monitor_70:.0f} % "
        "| {images_90:.0f}, {images_80:.0f}, {images_70:.0f} % "
        "| {nr_90:.0f}, {nr_80:.0f}, {nr_70:.0f} % | {brisque_90:.0f}, {brisque_80:.0f}, {brisque_70:.0f} % "
        "| {blur_90:.0f}, {blur_80:.0f}, {blur_70:.0f} % | {psnr_90:.0f}, {psnr_80:.0f}, {psnr_70:.0f} % |",
        sample.gate_areas,
    ),
    Sentence(QUALITY, "| all failures, alpha 10 % | none | {failure_10_average:.0f} % |", sample.monitor_promise),
    Sentence(QUALITY, "| alpha 15 % | none | {failure_15_average:.0f} % |", sample.monitor_promise),
    Sentence(
        QUALITY, "| alpha 20 % | {failure_20_guaranteed:.0f} % | {failure_20_average:.0f} % |", sample.monitor_promise
    ),
    Sentence(QUALITY, "image cost, alpha 10 % | {lost_10_guaranteed:.0f} % |", sample.monitor_promise),
)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.text[:50])
def test_a_page_has_the_number_that_the_sample_gives(sentence: Sentence) -> None:
    assert not sentence.mismatch()
