"""Load saved files in a process that did not save them, and say what is in them (`python -m longpole.bench.io.reload`).

What the saving process finds in its own memory proves nothing about the file; this one has nothing but the file.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.io.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIMEOUT_S: Final = 300.0


def fingerprint(tensors: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return name -> [dtype, shape, blake2b of the bytes] of tensors."""
    return {
        name: [
            str(tensor.dtype),
            list(tensor.shape),
            hashlib.blake2b(memoryview(tensor).cast("B"), digest_size=20).hexdigest(),
        ]
        for name, tensor in tensors.items()
    }


def find_reload_failures(files: Sequence[tuple[str, Path]], expected: Mapping[str, Any], size_bytes: int) -> list[str]:
    """Load files in one fresh process, and say how what it finds differs from what was saved.

    Args:
        files: (format, file) of each.
        expected: The tensors that each of them holds.
        size_bytes: Of those tensors.

    Returns:
        A sentence for each file that differs or cannot be loaded.
    """
    wanted = json.loads(json.dumps(fingerprint(expected)))
    asked = json.dumps([[form, str(file), size_bytes] for form, file in files])
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "longpole.bench.io.reload"],
            input=asked,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        found = json.loads(answer.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return ["the process that was to load the files again gave no answer"]
    failures = []
    for (form, file), tensors in zip(files, found, strict=True):
        if isinstance(tensors, str):
            failures.append(f"{form}: {file.name} cannot be loaded in another process: {tensors}")
        elif tensors != wanted:
            names = sorted(name for name in wanted if tensors.get(name) != wanted[name])
            failures.append(f"{form}: another process finds other bytes in {', '.join(names[:3]) or 'other names'}")
    return failures


def main() -> int:
    """Read what to load from standard input; write what was found to standard output."""
    answers: list[Any] = []
    for form, file, size_bytes in json.load(sys.stdin):
        loader = FORMATS[form]()
        try:
            loader.prepare_load(size_bytes)
            answers.append(fingerprint(loader.load(Path(file), size_bytes)))
        except Exception as error:  # noqa: BLE001 - whatever a library raises for a damaged file is the answer
            answers.append(f"{type(error).__name__}: {error}")
    sys.stdout.write(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
