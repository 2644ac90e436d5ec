"""Which version of the package wrote a document."""

from __future__ import annotations


def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("longpole")
    except PackageNotFoundError:
        return "0+unknown"
