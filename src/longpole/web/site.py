"""The server of `longpole serve`: one page, one question, on the loopback interface.

Others may use the machine too, and any web page that is open beside may send requests here. So whatever is asked needs
the token of the address, the `Host` header has to name the loopback interface (a name that was made to point here is
somebody else's page: DNS rebinding), and an `Origin` has to be this very site. Nothing is written, and no address is
logged, for it holds the token.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from longpole.errors import LongpoleError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOOPBACK: Final = "127.0.0.1"
TOKEN_BYTES: Final = 24  # 192 bits: beyond guessing
TOKEN_HEADER: Final = "X-Longpole-Token"
CHANGES_MAX: Final = 64  # our choice: more than anybody moves
BODY_MAX_BYTES: Final = 65_536  # our choice: 64 changes of a kilobyte
_TIMEOUT_S: Final = 30.0  # a client that stops in the middle of a request is let go
_HTML: Final = "text/html; charset=utf-8"
_JSON: Final = "application/json"
# `frame-ancestors` means nothing in the page's own policy, so it is sent.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """What the page asks.

    Attributes:
        changes: Options of `longpole whatif` with their values, in the order in which they are made.
    """

    changes: list[str]


class Site(ThreadingHTTPServer):
    """A page and what answers its questions.

    Args:
        page: The page.
        answer: Returns a JSON document, given changes as they are written on a command line.
        port: Where to listen; 0 for any that is free.

    Raises:
        UsageError: The port is taken, or may not be used.
    """

    daemon_threads = True  # an answer under way does not hold up the end
    block_on_close = False

    def __init__(self, page: bytes, answer: Callable[[Sequence[str]], bytes], port: int = 0) -> None:
        self.page = page
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._answer = answer
        self._asked = threading.Lock()  # replays of one run, one after the other
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            msg = f"--port {port}: cannot be listened on: {error.strerror or error}; name another, or none for any"
            raise UsageError(msg) from None

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        return f"http://{LOOPBACK}:{self.server_port}/?token={self.token}"

    def hosts(self) -> tuple[str, ...]:
        """Return the names that this site goes by."""
        return tuple(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))

    def answer(self, changes: Sequence[str]) -> bytes:
        """Answer one question at a time.

        Raises:
            LongpoleError: A change is none.
        """
        with self._asked:
            return self._answer(changes)

    def serve(self) -> None:
        """Serve until Ctrl-C, then close."""
        try:
            self.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet where a browser went away; say in a line what else went wrong."""
        del request, client_address
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            sys.stderr.write(f"longpole: a request failed ({type(error).__name__})\n")


def check_port(port: int) -> None:
    """Look whether a port can be listened on, before long work is done in vain.

    Raises:
        UsageError: It is taken, or may not be used.
    """
    Site(b"", lambda _: b"", port).server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Site
    server_version = "longpole"
    sys_version = ""
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """Hand out the page."""
        parts = urlsplit(self.path)
        if not self._is_let_in((parse_qs(parts.query).get("token") or [""])[0]):
            return
        if parts.path == "/":
            self._send(200, _HTML, self.server.page)
        else:
            self._refuse(404, "there is the page at / and the question at /whatif, and nothing else")

    do_HEAD = do_GET  # noqa: N815 - named by http.server

    def do_POST(self) -> None:
        """Answer a question."""
        if not self._is_let_in(self.headers.get(TOKEN_HEADER, "")):
            return
        if urlsplit(self.path).path != "/whatif":
            self._refuse(404, "questions are asked at /whatif")
            return
        body = self._body()
        if body is None:
            return
        try:
            question = msgspec.json.decode(body, type=Question)
        except msgspec.DecodeError as error:
            self._refuse(400, f'expected {{"changes": ["--set input=0.5x"]}}: {error}')
            return
        if not 0 < len(question.changes) <= CHANGES_MAX:
            self._refuse(400, f"expected 1 to {CHANGES_MAX} changes; found {len(question.changes)}")
            return
        self._reply_to(question)

    def _reply_to(self, question: Question) -> None:
        try:
            document = self.server.answer(question.changes)
        except LongpoleError as error:
            self._refuse(400, str(error))
        except Exception as error:  # noqa: BLE001 - whatever fails, the page hears of it and the site stays up
            self._refuse(500, f"internal error ({type(error).__name__}); longpole whatif --debug says more")
        else:
            self._send(200, _JSON, document)

    def _is_let_in(self, token: str) -> bool:
        if self.headers.get("Host", "") not in self.server.hosts():
            self._refuse(403, "this site is only for 127.0.0.1 and localhost, on the port it listens on")
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts()]:
            self._refuse(403, "another site may not ask")
            return False
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(403, "the token is missing or wrong; open the address that longpole serve printed")
            return False
        return True

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(411, "expected a Content-Length")
            return None
        if len(length) > 9 or int(length) > BODY_MAX_BYTES:
            self._refuse(413, f"expected at most {BODY_MAX_BYTES:,} bytes")
            return None
        return self.rfile.read(int(length))

    def _refuse(self, status: int, why: str) -> None:
        self._send(status, _JSON, msgspec.json.encode({"error": why}) + b"\n")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what http.server itself refuses, such as another method, as everything else is answered."""
        del explain
        self.close_connection = True
        self._refuse(code, message or "not understood")

    def log_message(self, *_: Any) -> None:
        """Log nothing: addresses hold the token."""
