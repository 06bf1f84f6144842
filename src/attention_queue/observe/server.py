"""The port of a worker on loopback: ``/metrics``, ``/events``, ``/livez`` and ``/readyz``.

A thread with the standard library's server, not a web framework in the worker's loop: it answers
while a handler holds the loop, and so can say that the loop is held; and writing out the metrics
takes no time from the handlers' loop. Loopback only, because it asks nobody who they are.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import TCPServer
from threading import Thread
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from attention_queue.errors import InvalidConfig
from attention_queue.observe.feed import Feed
from attention_queue.observe.health import Answer, Health

LOOP_ANSWERS = 5.0  # seconds within which a loop that lives has a turn
REFRESH_WITHIN = 5.0  # seconds; then the gauges of the store are the last ones
_SLOW_CLIENT = 5.0  # seconds
_POLL = 0.1  # seconds that a close may wait for the thread
_PATHS = b"there are /metrics, /events, /livez and /readyz\n"
_HOSTS = ("localhost", "127.0.0.1", "[::1]")

Page = tuple[HTTPStatus, str, bytes]


class ObserveServer:
    """Serves while it is entered, on the loop that enters it. Port 0 takes any that is free."""

    def __init__(
        self,
        registry: CollectorRegistry,
        health: Health,
        *,
        port: int,
        host: str = "127.0.0.1",
        refresh: Callable[[], Coroutine[Any, Any, None]] | None = None,
        feed: Feed | None = None,
    ) -> None:
        """``refresh`` runs on the loop before each scrape.

        Raises:
            InvalidConfig: The host is not loopback.
        """
        if not _is_loopback(host):
            raise InvalidConfig((f"metrics: {host!r} is not loopback, and nobody is asked who",))
        self._registry, self._health = registry, health
        self._address, self._refresh = (host, port), refresh
        self.feed = feed
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> ObserveServer:
        """Raises: InvalidConfig: The port is taken."""
        self._loop = asyncio.get_running_loop()
        try:
            self._server = _Server(self._address, self)
        except (OSError, OverflowError) as error:
            host, port = self._address
            why = getattr(error, "strerror", None) or str(error)
            raise InvalidConfig((f"metrics: {host}:{port}: {why}; choose another port",)) from error
        self._thread = Thread(
            target=self._server.serve_forever, args=(_POLL,), name="attn-metrics", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()
        await asyncio.to_thread(self._thread.join)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def page(self, path: str, accept: str) -> Page:
        """What a path shows; called on the threads of the server."""
        match path:
            case "/metrics":
                return self._metrics(accept)
            case "/livez":
                turns = self._on_loop(_turn, LOOP_ANSWERS)
                return _answer(Answer("ok") if turns else Answer("unready", "its loop is held"))
            case "/readyz":
                return _answer(self._health.ready())
        return (
            HTTPStatus.NOT_FOUND,
            "text/plain",
            _PATHS,
        )

    def _metrics(self, accept: str) -> Page:
        if self._refresh is not None:
            self._on_loop(self._refresh, REFRESH_WITHIN)
        encode, content_type = choose_encoder(accept)
        return HTTPStatus.OK, content_type, encode(self._registry)

    def _on_loop(self, ask: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> bool:
        """Whether the loop has done it in time."""
        assert self._loop is not None
        asked = ask()
        try:
            asyncio.run_coroutine_threadsafe(asked, self._loop).result(seconds)
        except (TimeoutError, CancelledError):
            return False
        except RuntimeError:  # the loop is closed
            asked.close()
            return False
        return True


class _Server(ThreadingHTTPServer):
    allow_reuse_port = False  # newer Pythons let two processes share one, and each scrape is either

    def __init__(self, address: tuple[str, int], pages: ObserveServer) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without the look-up of our own name, which may wait for a name server."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _SLOW_CLIENT
    server: _Server

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").lower()
        if re.sub(r":\d+$", "", host) not in _HOSTS:  # a web page that calls itself loopback
            status, kind, body = HTTPStatus.FORBIDDEN, "text/plain", b"ask for localhost\n"
        elif self.path == "/events" and self.server.pages.feed and self.command == "GET":
            self._stream(self.server.pages.feed)
            return
        else:
            path = self.path.partition("?")[0]
            status, kind, body = self.server.pages.page(path, self.headers.get("Accept") or "")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def _stream(self, feed: Feed) -> None:
        """Until the listener goes away, or the feed ends."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with feed.lines() as lines, suppress(OSError):
            for line in lines:
                self.wfile.write(line)

    def version_string(self) -> str:
        return "attn"

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are no news."""


async def _turn() -> None:
    """Nothing; that it was done shows that the loop turns."""


def _answer(answer: Answer) -> Page:
    status = HTTPStatus.SERVICE_UNAVAILABLE if answer.status == "unready" else HTTPStatus.OK
    return status, "application/json", msgspec.json.encode(answer) + b"\n"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
