"""A worker that measures nothing: it writes the lines that a rank would, or dies, hangs or lies, as it is told to.

`OMP_FAKE_RANKS` in its environment says how: `die:RANK`, `hang:RANK`, `wrong:RANK`, `refuse:KIND`, or nothing.
A time is 1000 ns and one more for each byte; a setting with `OMP_SPEED=N` is N times as fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> int:
    if arguments[0] == "--probe":
        facts = {"backend": "gloo", "device": "cpu", "versions": {"torch": "0"}, "problem": ""}
        sys.stdout.write(json.dumps(facts) + "\n")
        return 0
    config, rank = json.loads(Path(arguments[0]).read_text(encoding="utf-8")), int(arguments[1])
    does, _, whom = os.environ.get("OMP_FAKE_RANKS", "").partition(":")
    speed = float(os.environ.get("OMP_SPEED", "1"))
    with Path(config["out"].format(rank=rank)).open("w", encoding="utf-8") as out:
        Path(config["out"].format(rank=f"{rank}-pid")).write_text(str(os.getpid()), encoding="utf-8")
        for number, (kind, size_bytes, _) in enumerate(config["cells"]):
            if number == 1 and whom == str(rank):
                if does == "die":
                    sys.exit("RuntimeError: the wire is cut")
                if does == "hang":
                    time.sleep(600)
            line = {"cell": number, "bytes": size_bytes, "wrong": int(does == "wrong" and whom == str(rank))}
            times = [round((1000 + size_bytes + repeat) / speed) for repeat in range(config["repeats"])]
            line |= {"durations_ns": times, "starts_ns": [10 * rank] * len(times)}
            if does == "refuse" and whom == kind:
                line = {"cell": number, "unsupported": f"gloo does not support {kind}"}
            out.write(json.dumps(line) + "\n")
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
