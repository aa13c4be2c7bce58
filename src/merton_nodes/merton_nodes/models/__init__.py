"""VLMs and policies as nodes."""
