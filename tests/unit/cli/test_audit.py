"""`longpole audit` from the command line to its outputs."""

from __future__ import annotations

import io
import json
import textwrap
from typing import TYPE_CHECKING

import msgspec
import pytest

from longpole.cli.main import main
from longpole.records.audit import Audit
from tests.audit_samples import ARTICLE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def article(tmp_path: Path) -> Path:
    file = tmp_path / "article.toml"
    file.write_text(textwrap.dedent(ARTICLE), encoding="utf-8")
    return file


def audit_of(text: str, tmp_path: Path, *options: str) -> int:
    file = tmp_path / "claims.toml"
    file.write_text(text, encoding="utf-8")
    return main(["audit", str(file), *options])


def test_a_page_and_a_file(article: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "audit.json"

    assert main(["audit", str(article), "--json", str(file)]) == 1

    out, err = capsys.readouterr()
    assert out.startswith("INCONSISTENT  2 statements: 2 inconsistent; 1 pair")
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""
    document = msgspec.json.decode(file.read_bytes(), type=Audit)
    assert [one.verdict for one in document.statements] == ["inconsistent", "inconsistent"]


def test_claims_from_standard_input_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = b'{"gpus": 8, "tp": 4, "pp": 2, "dp": 2}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(claims)))

    assert main(["audit", "-", "--json", "-"]) == 1

    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "longpole.audit/1"
    assert document["statements"][0]["findings"][0]["corrections"][0]["value"] == 16


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('tflops = 400\npeak_tflops = 989.4\nmfu = "41 %"', 0),
        ('tflops = 400\npeak_tflops = 989.4\nmfu = "42 %"', 1),
        ('mfu = "156 %"', 1),
        ('device = "H100"\nmfu = "85 %"', 1),
        ("all_reduces = 80\nmessage = 167772160\nlink = 400\ncomm_s = '33 ms'", 1),
        ("params = 7e9", 5),
        ('mfu = "-3 %"', 3),
        ("mfu = [", 3),
        ("", 3),
    ],
)
def test_the_exit_code_tells_the_verdict(text: str, code: int, tmp_path: Path) -> None:
    assert audit_of(text, tmp_path, "-q") == code


def test_a_model_is_read_from_its_configuration_beside_the_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "intermediate_size": 14336,
        "vocab_size": 128256,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = 'model = "config.json"\nseq = 8192\ndevice = "H100"\ntok_s_gpu = 5762\nmfu = "33.7 %"\n'

    assert audit_of(text, tmp_path) == 0
    assert "FLOPs counted as titan" in " ".join(capsys.readouterr().out.split())


def test_everything_is_shown_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'params = 13e9\nseq = 2048\ngbs = 8\nflops_step = "1.28 PFLOP"\n'

    assert audit_of(text, tmp_path, "--all") == 0

    page = " ".join(capsys.readouterr().out.split())
    assert "R4 holds FLOPs of a step are its tokens times FLOPs per token" in page
    assert "follows" in page


def test_no_file_and_no_toml_are_told_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path / "none.toml")]) == 2
    assert audit_of("mfu = 40 %", tmp_path) == 3

    err = capsys.readouterr().err
    assert "none.toml: no such file; name a file of claims" in err
    assert "is not TOML" in err
    assert "docs/reference/claims.md lists the keys" in err


def test_what_a_file_says_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '"a\\u001b[2J" = 3\nname = "b\\u001b[2J"\nquote = "c\\u001b[2J"\ntitle = "d\\u001b[2J"\ngpus = 8\ntp = 3\n'

    assert audit_of(text, tmp_path) == 1
    assert audit_of('mfu = "\\u001b[2J"', tmp_path) == 3

    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert "\x1b" not in err
    assert "c\\x1b[2J" in out


def test_the_claims_are_not_written_over(article: Path) -> None:
    before = article.read_bytes()

    assert main(["audit", str(article), "--json", str(article)]) == 2
    assert article.read_bytes() == before


def test_many_rows_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f'[[claim]]\nname = "row {n}"\ngpus = {8 * n}\ntp = 4\npp = 2\ndp = {n}\n' for n in range(1, 41))

    assert audit_of(rows, tmp_path) == 0

    page = capsys.readouterr().out
    assert page.startswith("CONSISTENT  40 statements: 40 consistent")
    assert "row 1, row 2, row 3 and 37 more" in page
    assert len(page.splitlines()) < 12
