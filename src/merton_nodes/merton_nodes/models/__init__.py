"""VLMs and policies as nodes."""

__all__ = ["vla_node", "vlm_node"]
