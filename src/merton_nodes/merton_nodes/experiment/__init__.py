"""Experiments over the graph: trials, scores, the record."""

__all__ = ["aggregator_node", "experiment_node", "run_experiment", "scorer_node"]
