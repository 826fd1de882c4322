"""``python -m tensorlang``: the same as the ``tensorlang`` command."""

from tensorlang.cli.main import main

if __name__ == "__main__":
    main()
