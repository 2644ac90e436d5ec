"""Write the files that are made from the code: the JSON Schema that the package ships, and the golden pages.

Run it after a change that is meant to change them, and read the difference before it is committed:
`python -m tools.write_generated`. Tests fail where a file is not what this would write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from longpole.report.json import report_schema
from longpole.report.text import render_text
from tests.report_builder import SAMPLES

ROOT: Final = Path(__file__).resolve().parents[1]
SCHEMA: Final = Path("src/longpole/report/schema/report.json")
GOLDEN: Final = Path("tests/golden")


def generated_files() -> dict[Path, bytes]:
    """Return path from the repository's root -> what belongs there."""
    pages = {
        GOLDEN / f"report-{name}.txt": render_text(build(), width=80, color=False).encode()
        for name, build in SAMPLES.items()
    }
    return {SCHEMA: report_schema(), **pages}


def main() -> int:
    """Write the files that differ."""
    for path, content in generated_files().items():
        target = ROOT / path
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
