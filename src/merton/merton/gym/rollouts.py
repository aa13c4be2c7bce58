"""Episodes of a harness that resets its policy before each and tells it no more: `lerobot-eval`.

The harness writes the successes of all episodes into a file when the last is over. Until then the episodes are held
open, so that those of a harness that dies have no result and are given again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from merton.episodes.design import Condition
from merton.episodes.episode import Episode
from merton.episodes.run import EpisodesRun
from merton.episodes.shown import EVERYTHING, EpisodePictures, ShownPart, pictures_seed
from merton.errors import InputError
from merton.gym.shown_in import Pictures

NO_RESULTS = "the harness wrote no results"
UNNAMED = "task"
"""Name of a task of which the harness says nothing."""


class Rollouts:
    """The episodes of one run of the harness, in the order in which they begin.

    The scene of an episode is its number among those of its task, from 0: the harness seeds them so.

    Args:
        condition: of every episode; None for that of the run's design, which for each scene is the first left.
        run: open; None if nothing is recorded.
        agent: id of the policy in the record.
        seed: of noise and faults where nothing is recorded.
        part: what is distorted where nothing is recorded.

    Raises:
        InputError: no such distortion or level.
    """

    def __init__(
        self,
        condition: Condition | None,
        run: EpisodesRun | None = None,
        agent: str = "",
        seed: int = 0,
        part: ShownPart = EVERYTHING,
    ) -> None:
        if condition is not None:
            EpisodePictures(condition.distortion, condition.level)
        self.condition, self.run, self.agent, self.seed, self.part = condition, run, agent, seed, part
        self.episodes: list[Episode] = []
        self._pictures: list[EpisodePictures] = []
        self._scenes: dict[str, int] = {}
        self._began_s = time.time()
        self.step = 0

    def begin(self, tasks: Sequence[str]) -> None:
        """Begin the episodes of a batch, all of them at step 0.

        Args:
            tasks: the task of each in words; "" if the harness does not say it.

        Raises:
            InputError: more than one episode where they are recorded: nothing tells when one of a batch is over.
        """
        if self.run is not None and len(tasks) > 1:
            raise InputError(
                f"a batch of {len(tasks)} episodes does not tell when each is over, so its steps cannot be recorded; "
                "ask for batches of one: --eval.batch_size=1"
            )
        self.step, self._pictures = 0, []
        for said in tasks:
            task = said or UNNAMED
            scene = self._scenes.get(task, 0)
            self._scenes[task] = scene + 1
            if self.run is not None:
                self.episodes.append(self.run.begin(self.agent, task, scene, self.condition, instruction=said))
            else:
                shown = self.condition or Condition()
                seed = pictures_seed(self.seed, shown.case(task, scene))
                self._pictures.append(EpisodePictures(shown.distortion, shown.level, seed, self.part))

    def show(self, i: int, pictures: Pictures) -> Pictures:
        """The pictures of the present step of an episode of the batch; the very objects where nothing is distorted."""
        if self.run is not None:
            return self.episodes[-1].show(self.step, pictures)
        return self._pictures[i].show_all(self.step, pictures)

    def over(self) -> None:
        """The batch is over: a reset of the policy tells so."""
        if self.episodes:
            self.episodes[-1].over()

    def close(self, results: Path) -> int:
        """End all episodes by the harness's own results, and close the run.

        Args:
            results: the file that the harness writes at its end, `eval_info.json` of lerobot-eval.

        Returns:
            How many episodes have a success or a failure of the harness.

        Raises:
            InputError: there is no such file that is newer than the first episode, or it has other episodes. All of
                them are given up then, and their conditions are given again.
        """
        if self.run is None:
            return 0
        self.over()
        try:
            successes = self._successes(results)
        except InputError as error:
            for episode in self.episodes:
                episode.lost(f"{NO_RESULTS}: {error}")
            self.run.close()
            raise
        for episode, success in zip(self.episodes, successes, strict=True):
            episode.end(success)
        self.run.close()
        return len(successes)

    def _successes(self, results: Path) -> list[bool]:
        try:
            if results.stat().st_mtime < self._began_s:
                raise InputError(f"{str(results)!r} is older than the episodes")
            successes = read_successes(json.loads(results.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{str(results)!r} has no results of lerobot-eval: {error}") from None
        if len(successes) != len(self.episodes):
            raise InputError(
                f"{str(results)!r} has {len(successes)} episodes, and {len(self.episodes)} were begun: parallel tasks "
                "(--env.max_parallel_tasks) and other policies in the same file cannot be told apart"
            )
        return successes


def read_successes(info: Mapping[str, object]) -> list[bool]:
    """The successes in the content of lerobot-eval's `eval_info.json`, in the order in which the episodes were run.

    Raises:
        KeyError, TypeError: it is no such content.
    """
    tasks = info["per_task"]
    if not isinstance(tasks, list):
        raise TypeError("per_task is no list")
    return [bool(success) for task in tasks for success in task["metrics"]["successes"]]
