"""The card of a dataset of demonstrations: README.md, whose front matter a hub reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from merton.config import dumps

ACTION_IS = (
    "the joint angles of the next frame [rad], and the opening that is commanded there [m]; the last action is to stay"
)


def card(episodes: int, successes: int, frames: int, fps: int, provenance: Mapping[str, Any]) -> bytes:
    """The file's content."""
    front = {
        "pretty_name": f"Demonstrations of {provenance['source']}",
        "task_categories": ["robotics"],
        "tags": ["LeRobot", "merton", provenance["robot"].lower()],
        "configs": [{"config_name": "default", "data_files": "data/*/*.parquet"}],
    }
    text = f"""
# Demonstrations of {provenance["source"]}

{episodes} executed trials of a {provenance["robot"]} with a two-finger gripper, {successes} of them successes:
{frames} frames at {fps} Hz, in the format of [LeRobot](https://github.com/huggingface/lerobot), version 3.0,
written by Merton {provenance["merton"]}.

```python
from lerobot.datasets.lerobot_dataset import LeRobotDataset

dataset = LeRobotDataset("me/demonstrations", root="FOLDER")   # this folder
```

| feature | content |
|---|---|
| `observation.images.<camera>` | {provenance["pictures"]} |
| `observation.state` | six joint angles [rad], shoulder pan to wrist 3, and the opening of the gripper [m] |
| `action` | {ACTION_IS} |
| `tcp_pose` | of the tool in `base_link`: position [m] and quaternion x, y, z, w |
| `next.done`, `next.success` | true at the last frame; whether the trial was a success |

The columns of an episode in `meta/episodes` name trial, agent, scene, distortion and its level, outcome and scores.
Trials of one scene are alike: put all of them on the same side of a split. `meta/merton.json` names source, versions
and hashes.

**Limits.** {provenance["limits"]}
"""
    return f"---\n{dumps(front)}---\n{text}".encode()
