"""What the Python that a command runs on has installed, asked of that Python itself and without importing torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIMEOUT_S: Final = 30.0
_SHEBANG_BYTES: Final = 256
# Versions are read from torch's own version.py and from the names of installed packages: importing torch takes seconds.
_PROBE: Final = r"""
import hashlib, importlib.util, json, platform, sys
found = {"python": platform.python_version(), "implementation": platform.python_implementation(),
         "gil": getattr(sys, "_is_gil_enabled", lambda: True)(), "debug": hasattr(sys, "gettotalrefcount")}
try:
    from importlib import metadata
    packages = sorted({(d.metadata["Name"] or "").lower() + "==" + d.version for d in metadata.distributions()})
    found["packages_hash"] = hashlib.blake2b("\n".join(packages).encode(), digest_size=8).hexdigest()
    versions = dict(package.partition("==")[::2] for package in packages)
    for key, prefix in (("nccl_version", "nvidia-nccl"), ("cudnn_version", "nvidia-cudnn"),
                        ("numpy_version", "numpy"), ("triton_version", "triton")):
        hits = [v for n, v in versions.items() if n == prefix or n.startswith(prefix + "-cu")]
        if hits:
            found[key] = hits[0]
except Exception:
    pass
try:
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        scope = {}
        with open(spec.origin.replace("__init__.py", "version.py")) as file:
            exec(file.read(), {"__name__": "version"}, scope)
        for key, name in (("torch_version", "__version__"), ("torch_git", "git_version"),
                          ("cuda_runtime_version", "cuda"), ("hip_runtime_version", "hip")):
            if scope.get(name):
                found[key] = str(scope[name])
except Exception:
    pass
print(json.dumps(found))
"""


def find_interpreter(argv: Sequence[str]) -> str | None:
    """Return the Python that a command runs on: the program itself, or the one that its first line names.

    None where it is another program, or a shell script that starts who knows what.
    """
    program = shutil.which(argv[0]) if argv else None
    if program is None:
        return None
    if _is_python(program):
        return program
    try:
        with Path(program).open("rb") as file:
            first = file.read(_SHEBANG_BYTES).split(b"\n", 1)[0].decode("utf-8", "replace")
    except OSError:
        return None
    if not first.startswith("#!"):
        return None
    words = first[2:].split()
    if words[:1] and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    named = shutil.which(words[0]) if words else None
    return named if named is not None and _is_python(named) else None


def probe_interpreter(
    interpreter: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Return what an interpreter says of itself: versions of Python and of what computes; empty where it does not."""
    added = tuple(sorted((env or {}).items()))
    return _probe(interpreter, str(cwd) if cwd is not None else None, added)


@cache
def _probe(interpreter: str, cwd: str | None, env: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    argv = [interpreter, "-c", _PROBE]
    variables = {**os.environ, **dict(env)}
    try:
        answer = subprocess.run(
            argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=cwd, env=variables
        )
        found = json.loads(answer.stdout) if answer.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
    return found if isinstance(found, dict) else {}


def _is_python(program: str) -> bool:
    return Path(program).name.startswith(("python", "pypy"))
