"""`python -m merton` is the `merton` command."""

from merton.cli.main import main

if __name__ == "__main__":
    main()
