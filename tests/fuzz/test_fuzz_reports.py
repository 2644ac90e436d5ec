"""Whatever is done to a trace file: a report on which every law holds, or a refusal in one line that names the file."""

from __future__ import annotations

import gzip
import random
import time
from pathlib import Path
from typing import Final

import pytest

from longpole.errors import LongpoleError, UsageError
from tests.case_answers import NOT_KINETO
from tests.fuzz.mutations import mutate
from tests.laws import check_listing, check_refusal, check_report, report_on

ROOT: Final = Path(__file__).parents[2]
LONGEST_S: Final = 10.0
FEW, MANY = 60, 4000
SMALL_BYTES: Final = 40_000


def _small_cases() -> list[Path]:
    files = [path for path in sorted((ROOT / "tests" / "cases").rglob("*")) if path.is_file()]
    return [
        path
        for path in files
        if not path.name.startswith("expected")
        and ".json" in path.name
        and path.stat().st_size < SMALL_BYTES
        and not NOT_KINETO.keys() & set(path.parts)
    ]


SMALL: Final = _small_cases()
OWN: Final = sorted((ROOT / "examples").glob("*/*.json.gz"))


def _base(rng: random.Random) -> bytes:
    path = rng.choice(OWN if OWN and rng.random() < 0.05 else SMALL)
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _run(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    data, done = mutate(_base(rng), rng)
    path = folder / f"fuzzed_{seed}.json"
    path.write_bytes(data)
    begun = time.monotonic()
    try:
        report = report_on(path)
    except UsageError as error:  # an archive of several runs
        check_listing(error, path.name)
    except LongpoleError as error:
        check_refusal(error, path.name)
    else:
        check_report(report)
    took_s = time.monotonic() - begun
    assert took_s < LONGEST_S, f"{took_s:.1f} s after {done}"


def test_there_is_something_to_change() -> None:
    assert len(SMALL) > 30


@pytest.mark.parametrize("seed", range(FEW))
def test_a_changed_file_gives_a_lawful_report_or_a_clear_refusal(seed: int, tmp_path: Path) -> None:
    _run(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, MANY))
def test_many_more_changed_files_do_too(seed: int, tmp_path: Path) -> None:
    _run(seed, tmp_path)
