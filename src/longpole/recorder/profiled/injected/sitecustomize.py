"""Arm the recording of the program that this interpreter runs, then give way to the sitecustomize that was shadowed."""

if __name__ == "sitecustomize":  # not where a test or a type checker reads this file
    import os
    import sys

    _here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - read by Python 2.7 too
    _ours = sys.modules["sitecustomize"]
    try:
        if sys.version_info >= (3, 8):  # noqa: UP036 - the program's interpreter is any; no torch that we read is older
            from longpole_recording.arming import arm  # type: ignore[import-not-found]

            arm()
    except Exception as _error:  # noqa: BLE001 - whatever is wrong with us is not to be wrong with the program
        sys.stderr.write("longpole record: cannot record here: " + repr(_error) + "\n")
    # The program sees the path and the sitecustomize that it would have seen without us.
    sys.path[:] = [_entry for _entry in sys.path if not _entry or os.path.abspath(_entry) != _here]  # noqa: PTH100
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as _error:
        if getattr(_error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", _ours)
