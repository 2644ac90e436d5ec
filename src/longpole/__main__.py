"""Run the command line: `python -m longpole`."""

from __future__ import annotations

import sys

from longpole.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
