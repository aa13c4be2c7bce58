"""Models of either kind: how one is listed, loaded, reached over a wire and served."""
