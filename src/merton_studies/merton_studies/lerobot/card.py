"""The card of a distorted copy: the original's, with a section on what was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from merton.config import dumps
from merton.perception.distortion.setting import Setting


def with_section(
    card: str, about: Mapping[str, Any], episodes: Mapping[str, int], psnr_db: Mapping[Setting, float]
) -> str:
    """The text of README.md.

    Args:
        card: the original's, whose front matter with its licence stays; "" if it has none.
        about: what the copy depends on.
        episodes: name of a setting to the number of its episodes.
        psnr_db: setting to the least likeness of a distorted picture to the one in the video [dB].
    """
    if not card:
        front = {"task_categories": ["robotics"], "tags": ["LeRobot", "merton"]}
        card = f"---\n{dumps(front)}---\n\n# {about['source']}\n"
    counts = "\n".join(f"| `{name}` | {count} |" for name, count in sorted(episodes.items()))
    losses = ", ".join(f"{setting.name} {value:.1f} dB" for setting, value in psnr_db.items())
    steps = f" The frames {about['steps']} of an episode alone." if about["steps"] else ""
    return f"""{card.rstrip()}

## Distorted pictures

The pictures of this copy of `{about["source"]}` were distorted for training, by `merton distort dataset` of Merton
{about["merton"]}, seed {about["seed"]}: {", ".join(f"`{key}`" for key in about["cameras"])}.{steps} States, actions,
tasks and times are the original's; statistics of these pictures are new. `reference@0` is as it was.

| condition | episodes |
|---|---|
{counts}

`meta/merton_episodes.csv` names the condition of each episode, `meta/merton.json` versions, seeds and hashes.
{f"Videos were encoded anew. Least PSNR of a distorted picture to the one in its video: {losses}." if losses else ""}
"""
