"""The roles of the curation as an LLM plays them: prompts, validated answers, a cache and a budget."""

__all__ = ["agents", "asker", "forms", "prompting"]
