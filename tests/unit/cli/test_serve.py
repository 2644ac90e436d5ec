"""`longpole serve` from the outside: the address on standard output, and an end by Ctrl-C."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from longpole.cli.main import main

RUN = str(Path(__file__).resolve().parents[3] / "examples" / "ddp-gloo-1rank")


def test_the_address_is_the_only_output_and_ctrl_c_ends_it_well(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "longpole", "serve", RUN, "--jobs", "1"]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        url = running.stdout.readline().decode().strip()
        with urllib.request.urlopen(url, timeout=60) as page:
            assert page.read().startswith(b"<!doctype html>")
        running.send_signal(signal.SIGINT)
        rest, told = running.communicate(timeout=60)

    assert url.startswith("http://127.0.0.1:")
    assert (running.returncode, rest) == (0, b"")
    assert told.decode().splitlines()[-1] == "Ended."
    assert "token" not in told.decode()


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "8080.0", "٨٠", "000080"])
def test_what_is_no_port_is_refused_before_anything_is_read(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "nowhere/", f"--port={port}"]) == 2
    assert "--port: expected a number from 1 to 65535" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "nowhere/", "--port", str(port)]) == 2
    assert f"--port {port}: cannot be listened on" in capsys.readouterr().err
