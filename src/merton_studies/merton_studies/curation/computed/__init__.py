"""The voters of the Data Agent computed, without an LLM: votes by likeness."""

__all__ = ["learners", "matchers", "texts"]
