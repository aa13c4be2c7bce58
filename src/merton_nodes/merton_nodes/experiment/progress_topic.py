"""The topic of an experiment's progress."""

from __future__ import annotations

from merton_interfaces.msg import ExperimentProgress
from rclpy.node import Node

from merton.experiment.progress import Progress, Tracker
from merton_nodes.ros import names


def progress_message(progress: Progress) -> ExperimentProgress:
    """The message of an experiment's progress, without its stamp."""
    trial = progress.trial
    message = ExperimentProgress(
        run_id=progress.run,
        experiment=progress.experiment,
        state=int(progress.state),
        completed=progress.completed,
        total=progress.total,
        stage=progress.stage,
        step=progress.step,
        next_trial_id=progress.next_trial,
        elapsed_s=progress.elapsed_s,
        remaining_s=progress.remaining_s,
        error_msg=progress.error,
    )
    if trial is not None:
        message.trial_id, message.agent = trial.id, trial.agent.id
        message.task, message.scene = trial.case.task, trial.case.seed
        message.distortion, message.level = trial.case.distortion, trial.case.level
    return message


def published_tracker(node: Node) -> Tracker:
    """A tracker whose progress `node` publishes, latched; first that nothing runs."""
    publisher = node.create_publisher(ExperimentProgress, names.PROGRESS, names.LATCHED_QOS)

    def show(progress: Progress) -> None:
        message = progress_message(progress)
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)

    show(Progress())
    return Tracker(show)
