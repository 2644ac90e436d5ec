"""Wait for torch: nothing happens in a Python process that never imports it."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from .request import ROOT, VARIABLE

_TORCH = "torch"


class TorchFinder:
    """Stands before the other finders until torch is asked for, and has the session begin once it is imported."""

    def __init__(self, request: str) -> None:
        self._request = request

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find torch as if this finder were not there, and have its loader tell us when it is done."""
        if name != _TORCH:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self._follow(spec.loader)
                return spec
        sys.meta_path.insert(0, self)
        return None

    def _follow(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module
            load(module)
            _begin(module, self._request)

        loader.exec_module = exec_module


def arm() -> None:
    """Prepare this process for the import of torch, and the command's own process for the case that nothing comes."""
    request = os.environ.get(VARIABLE)
    if not request:
        return
    sys.meta_path.insert(0, TorchFinder(request))
    if os.environ.get(ROOT) == str(os.getpid()):
        atexit.register(_tell_if_unused, request, os.getpid())


def _begin(torch: Any, request: str) -> None:
    try:
        from .request import Request
        from .session import Session

        Session(torch, Request.decode(request)).install()
    except Exception as error:  # noqa: BLE001 - the program goes on, whatever is wrong with us
        from .saying import say

        say(f"cannot record here: {error!r}")


def _tell_if_unused(text: str, pid: int) -> None:
    """At the end of the command: say that nothing was recorded, unless somebody has said so or has recorded."""
    from .request import Request
    from .saying import say

    request = Request.decode(text)
    if os.getpid() != pid or not request.remove_out_if_empty() or request.quiet:
        return
    seen = "torch was not imported" if _TORCH not in sys.modules else "no optimizer stepped, and no model was called"
    say(f"nothing was recorded: {seen}")
