"""A small project of each protocol with material that is drawn here, to begin with and to test with."""

from merton_studies.people.examples.writing import write_example

__all__ = ["write_example"]
