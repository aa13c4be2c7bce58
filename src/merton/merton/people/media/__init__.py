"""Media of items, prepared for the browser: pictures, and reels from videos, lists of pictures and recordings."""

__all__ = ["image", "reel", "sizes", "video"]
