"""The words that all stages share: the cell, its tasks, observations, actions, geometry."""
