"""The server of `longpole serve`: it answers who has the address, and nobody else."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from longpole.errors import UsageError
from longpole.web.site import BODY_MAX_BYTES, CHANGES_MAX, TOKEN_HEADER, Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = b"<!doctype html><title>a page</title>"


def echo(changes: Sequence[str]) -> bytes:
    if changes == ["--bad"]:
        msg = "expected a change"
        raise UsageError(msg)
    if changes == ["--break"]:
        msg = "secret of the inside"
        raise ZeroDivisionError(msg)
    return json.dumps(list(changes)).encode()


@contextmanager
def running() -> Iterator[Site]:
    site = Site(PAGE, echo)
    thread = threading.Thread(target=site.serve)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running() as found:
        yield found


def ask(
    site: Site, method: str = "GET", path: str | None = None, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", site.server_port, timeout=20)
    parts = urlsplit(site.url)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path if path is not None else f"{parts.path}?{parts.query}", body, named)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def question(site: Site, *changes: str, **headers: str) -> tuple[int, bytes]:
    body = json.dumps({"changes": changes}).encode()
    status, data, _ = ask(site, "POST", "/whatif", body, **{TOKEN_HEADER.replace("-", "_"): site.token, **headers})
    return status, data


def test_the_address_gives_the_page_and_nothing_keeps_it(site: Site) -> None:
    status, data, headers = ask(site)

    assert (status, data) == (200, PAGE)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert site.url.startswith("http://127.0.0.1:")


def test_a_question_with_the_token_is_answered_in_the_order_asked(site: Site) -> None:
    assert question(site, "--set input=0.5x", "--async-copy") == (200, b'["--set input=0.5x", "--async-copy"]')


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%C3%A9", "/?Token=x"])
def test_without_the_token_there_is_no_page(site: Site, path: str) -> None:
    status, data, _ = ask(site, path=path)

    assert status == 403
    assert b"token" in data
    assert site.token.encode() not in data


def test_without_the_token_there_is_no_answer(site: Site) -> None:
    assert question(site, "--async-copy", X_Longpole_Token="wrong")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}"])
def test_a_name_that_was_made_to_point_here_is_refused(site: Site, host: str) -> None:
    """DNS rebinding: the browser believes that it talks to a page of its own."""
    assert ask(site, Host=host.format(port=site.server_port))[0] == 403


def test_localhost_is_this_machine_too(site: Site) -> None:
    assert ask(site, Host=f"localhost:{site.server_port}")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_another_site_may_not_ask_even_with_the_token(site: Site, origin: str) -> None:
    assert question(site, "--async-copy", Origin=origin.format(port=site.server_port))[0] == 403


def test_the_site_itself_may_ask(site: Site) -> None:
    assert question(site, "--async-copy", Origin=f"http://127.0.0.1:{site.server_port}")[0] == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"changes": "x"}', b'{"changes": []}', b'{"changes": ["a"], "path": "/etc"}', b"\xff\xfe"],
)
def test_what_is_no_question_is_refused_with_what_one_is(site: Site, body: bytes) -> None:
    status, data, _ = ask(site, "POST", "/whatif", body, X_Longpole_Token=site.token)

    assert status == 400
    assert "expected" in json.loads(data)["error"]


def test_too_many_changes_and_too_long_a_body_are_refused(site: Site) -> None:
    assert question(site, *["--async-copy"] * (CHANGES_MAX + 1))[0] == 400
    status, _, _ = ask(site, "POST", "/whatif", X_Longpole_Token=site.token, Content_Length=str(BODY_MAX_BYTES + 1))
    assert status == 413
    assert ask(site, "POST", "/whatif", X_Longpole_Token=site.token, Content_Length="-1")[0] == 411


def test_a_wrong_change_says_why_and_a_bug_shows_nothing_of_the_inside(site: Site) -> None:
    assert question(site, "--bad") == (400, b'{"error":"expected a change"}\n')
    status, data = question(site, "--break")
    assert status == 500
    assert b"ZeroDivisionError" in data
    assert b"secret" not in data
    assert question(site, "--async-copy")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_else_can_be_done(site: Site, method: str) -> None:
    assert ask(site, method)[0] == 501


@pytest.mark.parametrize("path", ["/etc/passwd?token={token}", "/../?token={token}", "/whatif?token={token}"])
def test_there_is_no_other_page(site: Site, path: str) -> None:
    assert ask(site, path=path.format(token=site.token))[0] == 404


def test_every_site_has_a_token_of_its_own(site: Site) -> None:
    with running() as other:
        assert len({site.token, other.token}) == 2
        assert ask(other, path=f"/?token={site.token}")[0] == 403


def test_a_port_that_is_taken_is_said(site: Site) -> None:
    with pytest.raises(UsageError, match=rf"--port {site.server_port}: cannot be listened on"):
        Site(PAGE, echo, site.server_port)


def test_no_address_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with running() as own:
        ask(own)
        ask(own, path="/?token=wrong")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")
