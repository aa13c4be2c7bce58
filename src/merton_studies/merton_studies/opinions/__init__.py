"""Opinions of models and people on the images of a dataset, one score per image, and the studies made of them."""

__all__ = [
    "attributes",
    "attributes_page",
    "dataset",
    "dataset_page",
    "human",
    "opinion",
    "opinion_tables",
    "published",
    "quality_levels",
    "sensitivity",
    "splits",
    "whose",
]
