"""Cognition: VLMs that answer questions about images, and the score of their answers."""

__all__ = ["final_answer", "models", "score", "slots", "text", "unanswered", "words"]
