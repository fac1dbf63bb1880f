"""``python -m mafl`` is the ``mafl`` command."""

from mafl.cli import main

if __name__ == "__main__":
    main()
