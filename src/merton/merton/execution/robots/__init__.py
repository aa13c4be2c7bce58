"""Robots that carry out joint trajectories, one module each."""
