"""The options of the policy type `merton`, as lerobot's programs take them: `--policy.<name>=<value>`."""

from __future__ import annotations

from dataclasses import dataclass, field

from lerobot.configs.policies import PreTrainedConfig


@PreTrainedConfig.register_subclass("merton")
@dataclass
class MertonConfig(PreTrainedConfig):
    """A policy that is shown distorted pictures.

    Attributes:
        wrapped: the policy, a folder or a name on the hub, as `--policy.path` takes it.
        distortion: a type of images or a fault of time; left out, the design of `run` chooses, and without one the
            pictures pass as they are.
        level: 0 .. 5, 5 the worst.
        cameras: the last parts of the keys of the pictures that are distorted, such as "top" of
            "observation.images.top"; all if left out. A run has them in its design.
        noise_seed: of noise and faults, >= 0. A run has it in its design.
        rename_map: names of observations for the wrapped policy, as lerobot-eval's own `--rename_map`.
        run: folder of an episodes run, which is made if there is none; left out, nothing is recorded.
        design: file of the design of a new run; left out, it has the one distortion and level.
        agent: id of the policy in the record; left out, the name of its folder.
        results: the file of successes that lerobot-eval writes at its end: `eval_info.json` in its `--output_dir`.
    """

    wrapped: str = ""
    distortion: str | None = None
    level: int = 0
    cameras: list[str] | None = None
    noise_seed: int = 0
    rename_map: dict[str, str] = field(default_factory=dict)
    run: str | None = None
    design: str | None = None
    agent: str = ""
    results: str | None = None

    @property
    def observation_delta_indices(self) -> None:
        """None: nothing is trained."""

    @property
    def action_delta_indices(self) -> None:
        """None: nothing is trained."""

    @property
    def reward_delta_indices(self) -> None:
        """None: nothing is trained."""

    def get_optimizer_preset(self) -> None:  # type: ignore[override]
        """None: nothing is trained."""

    def get_scheduler_preset(self) -> None:
        """None: nothing is trained."""

    def validate_features(self) -> None:
        """Nothing: the wrapped policy has features of its own."""
