"""The roles of the Data Agent computed, without an LLM: clusters for dimensions, review by rules, votes by likeness."""

__all__ = ["learners", "matchers", "proposers", "reviewer", "roles", "texts"]
