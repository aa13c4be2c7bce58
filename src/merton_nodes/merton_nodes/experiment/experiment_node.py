"""Runs trials and whole experiments over the graph, as two actions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from merton_interfaces.action import RunExperiment, RunTrial
from merton_interfaces.msg import TrialEvidence
from merton_interfaces.srv import RecordTrial
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future

from merton.errors import ErrorCode, InputError, MertonError
from merton.experiment.failed_models import failed_models
from merton.experiment.plan import ExperimentSpec, Trial, distortion_seed, single_trial
from merton.experiment.progress import State
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.trial import TrialReport
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton_nodes.cell.operator_desk import OperatorDesk
from merton_nodes.experiment.progress_topic import published_tracker
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.ros import names, trial_messages
from merton_nodes.ros.declared_cell import declared_cell
from merton_nodes.ros.runtime import StageNode, run


class ExperimentNode(StageNode):
    """The two actions; the work is done by `merton.experiment` in a thread while this node spins."""

    def __init__(self, **options: Any) -> None:
        super().__init__("experiment_node", **options)

    def set_up(self) -> None:
        deadline_s = self.parameter(
            "deadline_s", 20.0, "how long any node may take to answer [s]", minimum=0.5, maximum=3600.0
        )
        success = self.parameter("success", "cell", "judge of whether a task is done", choices=("cell", "operator"))
        limit_s = self.parameter(
            "confirmation_limit_s",
            120.0,
            "how long the operator may take to judge a trial [s]",
            minimum=0.1,
            maximum=3600.0,
        )
        lockstep = self.parameter(
            "lockstep", True, "all messages of an instant have one stamp, as in a simulated cell; false: real cameras"
        )
        renders = self.parameter(
            "renders_cell",
            False,
            "camera_node renders the cell, for an experiment's sensor, latency_s, distort.regions",
        )
        reset_limit_s = self.parameter(
            "reset_limit_s",
            0.0,
            "how long cell/reset may take, in which people arrange things [s]; 0: deadline_s",
            minimum=0.0,
            maximum=7200.0,
        )
        cell = declared_cell(self)
        desk = OperatorDesk(self, limit_s) if success == "operator" else None
        self.ports = RosPorts(
            self, cell, deadline_s, desk, lockstep=lockstep, reset_limit_s=reset_limit_s, renders=renders
        )
        self.recorder = self.create_client(RecordTrial, names.RECORD)
        self.evidence = self.create_publisher(TrialEvidence, names.TRIAL_EVIDENCE, names.KEPT_QOS)
        self.tracker = published_tracker(self)
        self.busy = False
        common: dict[str, Any] = {"goal_callback": self.on_goal, "callback_group": ReentrantCallbackGroup()}
        between_trials = {"cancel_callback": lambda goal: CancelResponse.ACCEPT}
        for server in (
            ActionServer(self, RunTrial, names.RUN_TRIAL, self.on_trial, **common),
            ActionServer(self, RunExperiment, names.RUN_EXPERIMENT, self.on_experiment, **common, **between_trials),
        ):
            self.closing.callback(server.destroy)

    def unfinished(self) -> str:
        return "trials are under way" if self.busy else ""

    def on_goal(self, _: object) -> GoalResponse:
        """One goal at a time: there is one arm."""
        if self.busy or not self.active:
            return GoalResponse.REJECT
        self.busy = True
        return GoalResponse.ACCEPT

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """The result of `work`, done in a thread while the executor goes on; its exception is raised here."""
        future: Future = Future()

        def worker() -> None:
            try:
                future.set_result(work())
            except Exception as error:  # the goal must end with any error
                future.set_exception(error)
            finally:
                self.busy = False
                if self.executor is not None:
                    self.executor.wake()

        threading.Thread(target=worker, name="trials", daemon=True).start()
        return await future

    async def on_trial(self, goal: ServerGoalHandle) -> RunTrial.Result:
        """Action: one trial, after its reference trial, which it is scored against."""
        request, result = goal.request, RunTrial.Result()

        def work() -> TrialRecord:
            def on_stage(stage: str, progress: float) -> None:
                self.tracker.stage(stage)
                goal.publish_feedback(RunTrial.Feedback(stage=stage, progress=progress))

            spec, trial = one_trial(request)
            self.tracker.begin(request.experiment_id, spec.name, 1, {trial.agent.id: 1})
            self.tracker.trial(trial)
            runner = Runner(spec, request.experiment_id or "live", self.ports, on_report=self.publish_evidence)
            return runner.run_single(trial, on_stage).record

        try:
            record = await self.in_thread(work)
        except Exception as error:  # the goal must end with a sentence for any error
            record = None
            code, sentence = self.code_and_sentence(error)
            self.tracker.end(State.FAILED, sentence)
            result.result = trial_messages.fault_message(code, sentence)
        if record is not None:
            self.tracker.end(State.FINISHED)
            result.result = trial_messages.result_message(record, distortion_seed(request.seed, record.case))
        goal.succeed()
        return result

    def publish_evidence(self, report: TrialReport) -> None:
        now = self.get_clock().now().nanoseconds
        record = report.record
        self.evidence.publish(trial_messages.evidence_message(report.evidence, now, record.experiment, record.id))

    def code_and_sentence(self, error: Exception) -> tuple[ErrorCode, str]:
        """Error code and sentence; the trace of an unexpected error goes to the log."""
        if isinstance(error, InputError):
            return ErrorCode.BAD_GOAL, self.describe(error)
        if isinstance(error, MertonError):
            return ErrorCode.INFRASTRUCTURE, self.describe(error)
        return ErrorCode.UNEXPECTED, self.describe(error)

    async def on_experiment(self, goal: ServerGoalHandle) -> RunExperiment.Result:
        """Action: all trials of a run that are not recorded yet; its result names models that failed in all."""
        result = RunExperiment.Result()
        try:
            records, failed = await self.in_thread(lambda: self.run_experiment(goal))
        except Exception as error:  # the goal must end with a sentence for any error
            result.error_code, result.error_msg = self.code_and_sentence(error)
            self.tracker.end(State.FAILED, result.error_msg)
            goal.abort()
            return result
        self.tracker.end(State.CANCELLED if goal.is_cancel_requested else State.FINISHED)
        count = {outcome: sum(record.outcome is outcome for record in records) for outcome in Outcome}
        result.trials = len(records)
        result.successes, result.failures = count[Outcome.SUCCESS], count[Outcome.FAILURE]
        result.emergency_stops = count[Outcome.EMERGENCY_STOP]
        result.invalid_actions = count[Outcome.INVALID_ACTION]
        result.infrastructure_faults = count[Outcome.INFRASTRUCTURE]
        result.abstentions = count[Outcome.ABSTAINED]
        if failed and not goal.is_cancel_requested:
            result.error_code, result.error_msg = ErrorCode.MODEL_FAILED, "; ".join(failed)
        goal.canceled() if goal.is_cancel_requested else goal.succeed()
        return result

    def run_experiment(self, goal: ServerGoalHandle) -> tuple[list[TrialRecord], list[str]]:
        """Run the remaining trials of the goal's run; returns the records of all its trials, and `failed_models`."""
        run_directory = RunDirectory(Path(goal.request.run_directory))
        if run_directory.spec.only_rendered and not self.ports.renders:
            raise InputError(f"in this cell {run_directory.spec.only_rendered}")
        done: dict[str, bool | None] = {}
        if run_directory.database.exists():
            with ResultStore(run_directory.database, read_only=True) as store:
                done = store.successes(run_directory.id)
        if done and not goal.request.resume:
            raise InputError(f"{run_directory.path} has {len(done)} results already; resume it, or start a new run")

        def on_trial(trial: Trial, completed: int, total: int) -> None:
            self.details["trial"] = f"{trial.id} ({completed + 1} of {total})"
            goal.publish_feedback(
                RunExperiment.Feedback(stage="trials", trial_id=trial.id, completed=completed, total=total)
            )

        def on_fault(text: str) -> None:
            self.counters["errors: trials tried again"] += 1
            self.get_logger().warning(text)
            goal.publish_feedback(RunExperiment.Feedback(stage=text))

        runner = Runner(
            run_directory.spec, run_directory.id, self.ports, run_directory.reference_run, self.publish_evidence
        )
        run_all(
            runner,
            run_directory,
            done,
            lambda record: self.record(run_directory, record),
            on_trial=on_trial,
            on_fault=on_fault,
            cancelled=lambda: goal.is_cancel_requested,
            tracker=self.tracker,
        )
        records = run_directory.records()
        return records, failed_models(run_directory.spec, records)

    def record(self, run_directory: RunDirectory, record: TrialRecord) -> None:
        """Hand a result to the aggregator; returns when it is durable."""
        message = trial_messages.result_message(record, distortion_seed(run_directory.spec.seed, record.case))
        self.ports.call(self.recorder, RecordTrial.Request(run_directory=str(run_directory.path), result=message))


def one_trial(request: RunTrial.Goal) -> tuple[ExperimentSpec, Trial]:
    """The trial of a goal, and its experiment. Raises InputError for names that do not exist."""
    if not request.vla_id:
        raise InputError("vla_id is empty: name the policy that acts, such as servo")
    return single_trial(
        request.vla_id,
        request.task,
        request.distortion,
        request.level,
        scene=request.scene_seed,
        vlm=request.vlm_id or "describe",
        agent=request.agent_id,
        seed=request.seed,
        max_steps=request.max_steps or 8,
    )


def main() -> None:
    sys.exit(run(ExperimentNode))
