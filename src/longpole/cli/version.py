"""`longpole version`: which version this is."""

from __future__ import annotations

from longpole.cli.terminal import write_text


def version() -> None:
    """Print the version."""
    write_text(f"longpole {read_version()}\n")


def read_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("longpole")
    except PackageNotFoundError:
        return "0+unknown"
