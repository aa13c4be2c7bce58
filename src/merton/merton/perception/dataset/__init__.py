"""Datasets like Embodied-IQA's: reference images, distorted copies, tags, tasks, and a manifest with hashes."""

from merton.perception.dataset.build import BuildResult, build
from merton.perception.dataset.sample import write_sample
from merton.perception.dataset.tags import CATEGORIES, TASKS_PER_IMAGE, VERBS, Tags, read_tags
from merton.perception.dataset.verify import verify

__all__ = [
    "CATEGORIES",
    "TASKS_PER_IMAGE",
    "VERBS",
    "BuildResult",
    "Tags",
    "alignment",
    "build",
    "copies",
    "database_types",
    "databases",
    "foreign",
    "importing",
    "intake",
    "layout",
    "origin",
    "read_tags",
    "settings",
    "tables",
    "tags",
    "verify",
    "write_sample",
]
