"""The numbers of a board at one moment, as bytes that anyone can recompute."""
