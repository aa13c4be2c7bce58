"""Models of either kind: how one is listed, loaded, reached over a wire and served."""

__all__ = [
    "base",
    "blobs",
    "catalogue",
    "checkpoints",
    "convolution",
    "networks",
    "rate_limit",
    "redaction",
    "remote",
    "serving",
    "worker",
]
