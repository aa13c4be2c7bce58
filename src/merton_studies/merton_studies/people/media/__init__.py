"""Media of items, prepared for the browser: pictures, and reels from videos, lists of pictures and recordings."""

__all__ = ["films", "image", "reel", "sizes", "video"]
