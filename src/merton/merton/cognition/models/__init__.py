"""VLMs, one module each."""

__all__ = ["base", "openai_chat", "transformers_vlm"]
