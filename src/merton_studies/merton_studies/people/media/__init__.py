"""Media of items, prepared for the browser: pictures, and reels from videos, lists of pictures and recordings."""

__all__ = ["encoding", "films", "image", "reel", "sizes", "video"]
