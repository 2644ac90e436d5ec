"""What was recorded, on what, and how quiet the machine was: `manifest.json` beside the recordings."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.predictions.changes import CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable

MANIFEST = "manifest.json"
RULES = ("graph", "ranks", "whatif", "vocabulary", "settings.py")  # of the package: what a prediction follows from
SHIPPED = "pairs.toml"  # what evaluate writes among them: a result, not a rule
SOURCE = Path(__file__).resolve().parents[2] / "src" / "longpole"


class Recorded(msgspec.Struct, kw_only=True):
    """One recording of one configuration.

    Attributes:
        configuration: its name.
        round: from 1; all recordings of a round share two processes, unless these had to be started anew.
        attempt: from 1; later ones replace a disturbed one.
        load: the machine's load average over a minute, before it.
        wall_s: of the training loop.
        others_share: what other programs used of all cores meanwhile.
        disturbed: that was more than allowed.
    """

    configuration: str
    round: int
    attempt: int
    load: float
    wall_s: float
    others_share: float
    disturbed: bool

    @property
    def folder(self) -> str:
        """Name the folder with the traces, from the manifest's."""
        return f"runs/{self.configuration}/{self.round}"


class Manifest(msgspec.Struct, kw_only=True):
    """All recordings of a folder.

    Attributes:
        started: date and time, UTC.
        machine: cores, processor, system; no name.
        versions: of Python and PyTorch.
        n_warmup, n_recorded: steps of every recording.
        seed: of the order within the rounds.
        changes_hash: of the table of changes; recordings of another table do not mix with these.
        rules_hashes: of the package's rules, at each start of the recorder; one means that they stood still.
        recorded: the recordings, one a configuration and round.
    """

    started: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    n_warmup: int
    n_recorded: int
    seed: int
    changes_hash: str
    rules_hashes: list[str]
    recorded: list[Recorded] = []

    def find(self, configuration: str) -> list[Recorded]:
        """Return the recordings of a configuration, by round."""
        return sorted((one for one in self.recorded if one.configuration == configuration), key=lambda one: one.round)

    def keep(self, new: Recorded) -> None:
        """Add a recording, in the place of an earlier attempt."""
        same = (new.configuration, new.round)
        self.recorded = [one for one in self.recorded if (one.configuration, one.round) != same]
        self.recorded.append(new)


class ManifestError(Exception):
    """A folder whose recordings cannot be used, or not be added to."""


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder.

    Args:
        folder: of the recordings.

    Returns:
        The manifest; none where there is no such file.

    Raises:
        ManifestError: it is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        message = f"{MANIFEST}: expected a manifest of recordings: {error}"
        raise ManifestError(message) from error


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest of a folder; whoever reads it meanwhile sees the old one or the new one."""
    new = folder / f"{MANIFEST}.new"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    new.replace(folder / MANIFEST)


def require_same(manifest: Manifest, asked: Manifest) -> None:
    """Refuse to add recordings that would not compare with those that are there.

    Args:
        manifest: of the folder.
        asked: what would be recorded now.

    Raises:
        ManifestError: something differs that must not; the message names it.
    """
    for name in ("changes_hash", "machine", "versions", "n_warmup", "n_recorded", "seed"):
        found, wanted = getattr(manifest, name), getattr(asked, name)
        if found != wanted:
            message = f"{name}: the folder has {found!r}, now it would be {wanted!r}; name another folder with --out"
            raise ManifestError(message)


def hash_changes() -> str:
    """Return the digest of the table of changes and of the program that has the knobs."""
    folder = CHANGES.parent
    return hash_meaning([CHANGES, folder / "knobs.py", folder / "workload.py"], folder)


def hash_rules() -> str:
    """Return the digest of the package's rules."""
    rules = [SOURCE / name for name in RULES]
    files = [file for rule in rules for file in ([rule] if rule.is_file() else rule.rglob("*"))]
    return hash_meaning([file for file in files if file.suffix in (".py", ".toml") and file.name != SHIPPED], SOURCE)


def hash_meaning(files: Iterable[Path], root: Path) -> str:
    """Return one digest of what Python and TOML files say: comments, docstrings and layout do not count.

    Args:
        files: in any order.
        root: of the paths that count as their names.

    Returns:
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256()
    for file in sorted(files):
        said = repr(tomllib.loads(file.read_text("utf-8"))) if file.suffix == ".toml" else strip_docstrings(file)
        digest.update(f"{file.relative_to(root).as_posix()}\0{said}\0".encode())
    return digest.hexdigest()[:16]


def strip_docstrings(file: Path) -> str:
    """Return the syntax tree of a Python file as text, without docstrings and places."""
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def is_text(node: ast.AST) -> bool:
    """Say whether a statement is nothing but a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def describe_machine() -> dict[str, str | int]:
    """Describe what the figures hold for; no name, no path."""
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.is_file() else []
    models = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return {
        "cores": os.cpu_count() or 1,
        "processor": ", ".join(sorted(models)) or platform.machine(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }
