"""A pool of questions about rendered scenes of Merton's own cell, with answers that the simulator knows."""

from merton_studies.curation.cell.pool import majorities, make_cell_pool

__all__ = ["majorities", "make_cell_pool"]
