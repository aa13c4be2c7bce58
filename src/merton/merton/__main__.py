"""`python -m merton` is the `merton` command."""

from merton.cli import main

if __name__ == "__main__":
    main()
