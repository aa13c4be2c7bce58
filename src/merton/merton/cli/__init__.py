"""The `merton` command."""
