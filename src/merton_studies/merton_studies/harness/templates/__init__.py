"""Verified parts of pipelines, two files per kind of answer; `merton_studies.harness.pipeline.composed` joins them.

Each file is plain Python of the standard library, so that the program made of them is one that a person can read, and
runs in a sandbox where there is no Merton.
"""

__all__: list[str] = []
