"""`longpole hang` on folders as jobs leave them: several moments, hosts in names, damaged files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.errors import InputError, UsageError
from longpole.pipeline.hang import hang_of
from tests.case_answers import CASES
from tests.flight_dumps import dump, entry, group, write_dumps

if TYPE_CHECKING:
    from pathlib import Path

ALL = group(range(3))
DUMPS = [dump(rank, [entry(ALL, 8)] + [entry(ALL, 9, done=False)] * (rank != 1)) for rank in range(3)]


def test_a_folder_gives_the_rank_that_never_came(tmp_path: Path) -> None:
    hang = hang_of([str(write_dumps(tmp_path, DUMPS))])

    assert (hang.verdict, [root.rank for root in hang.roots]) == ("host", [1])
    assert [source.rank for source in hang.sources] == [0, 1, 2]


def test_one_damaged_dump_costs_one_rank(tmp_path: Path) -> None:
    folder = write_dumps(tmp_path, DUMPS)
    (folder / "trace_rank_2").write_bytes((folder / "trace_rank_2").read_bytes()[:50])

    hang = hang_of([str(folder)])

    assert (hang.ranks, hang.missing) == ([0, 1], [2])
    assert any("left out" in caution and "trace_rank_2" in caution for caution in hang.cautions)


def test_two_moments_in_one_folder_are_listed_and_one_must_be_named(tmp_path: Path) -> None:
    write_dumps(tmp_path, DUMPS)
    for path in list(tmp_path.iterdir()):
        (tmp_path / path.name.replace("trace", "later")).write_bytes(path.read_bytes())

    with pytest.raises(UsageError, match=r"2 sets of dumps here(?s:.*)later_rank_\*  \(3 ranks\)"):
        hang_of([str(tmp_path)])


def test_nothing_to_read_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n", encoding="utf-8")

    with pytest.raises(InputError, match="no dump of a flight recorder here"):
        hang_of([str(tmp_path)])
    with pytest.raises(UsageError, match="no such file or folder"):
        hang_of([str(tmp_path / "nowhere")])


def test_b056_names_with_hosts_are_one_set_and_the_dump_knows_its_rank() -> None:
    expected = json.loads((CASES / "B056" / "expected.json").read_text(encoding="utf-8"))["values"]

    hang = hang_of([str(CASES / "B056" / "input")])

    assert (hang.ranks, hang.empty, hang.world_size) == (
        expected["ranks"],
        expected["empty"],
        expected["world_size"],
    )
    assert len(hang.missing) == expected["missing"]


def test_b057_the_rank_that_has_not_entered_is_named() -> None:
    expected = json.loads((CASES / "B057" / "expected.json").read_text(encoding="utf-8"))["values"]

    hang = hang_of([str(CASES / "B057" / "input")])

    (stuck,) = hang.groups
    assert (stuck.compare_from, stuck.stuck_at) == (expected["compare_from"], expected["stuck_at"])
    assert stuck.not_entered == [root.rank for root in hang.roots] == expected["not_entered"]
    assert len(hang.mismatches) == expected["mismatches"]


@pytest.mark.parametrize(("stops", "code"), [(True, 1), (False, 0)])
def test_the_exit_code_says_whether_somebody_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, stops: bool, code: int
) -> None:
    dumps = DUMPS if stops else [dump(rank, [entry(ALL, 8)]) for rank in range(3)]

    assert main(["hang", str(write_dumps(tmp_path, dumps)), "-q", "--json", "-"]) == code

    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "longpole.hang/1"
