"""Nothing of a trace's environment, and no credential wherever it stands, is copied to an output."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.report.document import Report
from longpole.report.json import render_json
from longpole.report.text.page import render_text
from tests.corpus.recordings import outcome_of
from tests.laws import report_on
from tests.trace_text import annotation, call, kernel, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DUMPED: Final = (
    "AMD-AGI-TraceLens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "AMD-AGI-TraceLens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "AMD-AGI-TraceLens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "AMD-AGI-TraceLens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
)
# In the form of real ones, and of nobody: cut in two so that no scanner takes this file for a leak.
SECRETS: Final = {
    "aws_key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "aws_session_key": "ASIA" + "QRSTUVWXYZ234567",
    "aws_secret": "wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYEXAMPLEKEY",
    "hugging_face": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "github": "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz",
    "openai": "sk-" + "proj-0123456789abcdefghijklmnop",
    "web_token": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.abcdefghijk",
}
FORMED: Final = {name: secret for name, secret in SECRETS.items() if name != "aws_secret"}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _outputs(report: Report) -> str:
    return render_json(report, "unit").decode() + render_text(report, width=200, color=False)


@pytest.mark.parametrize("path", DUMPED)
def test_no_value_of_a_real_environment_dump_is_in_the_report(corpus: Path, path: str) -> None:
    header = json.loads(gzip.decompress((corpus / path).read_bytes()))
    dumped = {text for text in _texts(header["metadata"]) if len(text) >= 8}
    report = outcome_of(corpus / path)
    assert isinstance(report, Report)
    # What the trace says elsewhere too, such as the version of the runtime.
    elsewhere = json.dumps({key: value for key, value in header.items() if key != "metadata"})

    shown = render_json(report, "unit").decode()

    assert len(dumped) > 20
    assert not [text for text in dumped if text in shown and text not in elsewhere]


@pytest.mark.parametrize("name", SECRETS)
def test_a_credential_in_the_header_is_not_in_the_report(tmp_path: Path, name: str) -> None:
    secret = SECRETS[name]
    environment = {"AWS_SECRET_ACCESS_KEY": secret, "HF_TOKEN": secret, "USER": secret, secret: secret}
    path = write(
        tmp_path / "rank0.json",
        [call(0, 5), kernel(10, 50)],
        schemaVersion=secret,
        host_name=f"host-{secret}" if name in FORMED else "host",
        traceName=f"/home/{secret}/trace.json",
        displayTimeUnit=secret,
        torch_version=secret,
        cuda_driver_version=secret,
        record_shapes=secret,
        with_stack={secret: secret},
        metadata=environment,
        env=environment,
        deviceProperties=[{"id": 0, "name": f"GPU {secret}" if name in FORMED else "GPU", "env": secret}],
        distributedInfo={
            "backend": secret,
            "rank": 0,
            "world_size": 1,
            "nccl_version": secret,
            "pg_config": [{"pg_name": secret, "pg_desc": secret, "backend_config": secret, "ranks": [0]}],
            "env": environment,
        },
    )

    shown = _outputs(report_on(path))

    assert secret not in shown
    assert secret[4:] not in shown


@pytest.mark.parametrize("name", FORMED)
def test_a_credential_in_a_name_is_redacted(tmp_path: Path, name: str) -> None:
    secret = SECRETS[name]
    events = [
        annotation(0, 100, f"ProfilerStep#0 {secret}"),
        annotation(1, 9, f"download with {secret}"),
        call(12, 5),
        kernel(70, 20, name=f"kernel_{secret[:2]} {secret}"),
        {"ph": "M", "name": "thread_name", "pid": 4200, "tid": 4200, "ts": 0, "args": {"name": secret}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": secret}},
    ]

    report = report_on(write(tmp_path / "rank0.json", events))

    shown = _outputs(report)
    assert secret not in shown
    assert secret[4:] not in shown
    assert report.ranks[0].top.kernels[0].name.endswith(" [redacted]")


@pytest.mark.parametrize(
    "name",
    [
        "export AWS_SECRET_ACCESS_KEY=" + SECRETS["aws_secret"],
        "login password: " + SECRETS["aws_secret"],
        "GET https://me:" + SECRETS["aws_secret"].replace("/", "_") + "@host/file",
        "Authorization: Bearer " + SECRETS["aws_secret"],
    ],
)
def test_a_secret_that_a_name_says_is_one_is_redacted(tmp_path: Path, name: str) -> None:
    report = report_on(write(tmp_path / "rank0.json", [call(0, 5), kernel(10, 50, name=name)]))

    (row,) = report.ranks[0].top.kernels

    assert "[redacted]" in row.name
    assert "K7MDENG" not in _outputs(report)


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
        "execute_context_0(sq0)_generation_32 num_tokens=12800000",
        "transformers/models/bert/tokenization_bert.py(512): tokenize",
        "KeyError: key=value_of_more_than_eight_letters",
        "torch/_inductor/async_compile.py(173): task-runner",
    ],
)
def test_an_ordinary_name_stays_as_it_is(tmp_path: Path, name: str) -> None:
    report = report_on(write(tmp_path / "rank0.json", [call(0, 5), kernel(10, 50, name=name)]))

    assert [row.name for row in report.ranks[0].top.kernels] == [name]
