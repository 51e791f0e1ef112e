"""A browser that opens many pages, told what to do over a pair of pipes in the protocol of Chromium's developer tools.

To start a browser takes longer than to look at a page with it: one is started for all tests of a process.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--allow-file-access-from-files", "--remote-debugging-pipe"),
)
ASKED_ON, TOLD_ON = 3, 4
"""The file descriptors at which a browser with ``--remote-debugging-pipe`` reads and writes."""
MOST_SECONDS = 90
"""So long one answer may take: a run on a busy machine may not fail for it."""


class Browser:
    """A running Chromium. A context manager, which ends it."""

    def __init__(self, program: str, folder: Path) -> None:
        """``folder``: where it may write its profile and what it complains of."""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        log = os.open(folder / "browser.log", os.O_WRONLY | os.O_CREAT, 0o644)
        # Numbers above those of the pair, so that neither takes the place of the other on the way.
        given = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, TOLD_ON + 1) for end in (theirs_in, theirs_out)]
        self._process = os.posix_spawnp(
            program,
            [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, given[0], ASKED_ON),
                (os.POSIX_SPAWN_DUP2, given[1], TOLD_ON),
            ],
        )
        for end in (theirs_in, theirs_out, log, *given):
            os.close(end)
        self._told = b""
        self._asked = 0
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._in, selectors.EVENT_READ)
        self.events: list[dict[str, Any]] = []
        """The events that the browser told by itself, all pages together."""

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of a command, of the whole browser or of the page of a session."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        _write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._asked:
                assert "error" not in told, (method, told["error"])
                return dict(told["result"])
            self.events.append(told)

    def wait_for(self, method: str, session: str) -> None:
        """Until the page of the session has told an event."""
        while not any(told.get("method") == method and told.get("sessionId") == session for told in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + MOST_SECONDS
        while b"\0" not in self._told:
            if not self._ready.select(max(0.0, end - time.monotonic())):
                raise TimeoutError(f"the browser has told nothing for {MOST_SECONDS} s")
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._told += piece
        message, _, self._told = self._told.partition(b"\0")
        return dict(json.loads(message))

    @contextmanager
    def page(self, file: Path, width: int = 1280, height: int = 800, dark: bool = False) -> Iterator[Page]:
        """A page, loaded in a window of its own of that size in pixels, which shares nothing with other pages."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable", session)
        page = Page(self, session)
        page.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", session, features=[scheme])
        self.ask("Page.navigate", session, url=file.as_uri())
        self.wait_for("Page.loadEventFired", session)
        try:
            yield page
        finally:
            self.ask("Target.disposeBrowserContext", browserContextId=context)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            self.ask("Browser.close")
        finally:
            self._ready.close()
            os.close(self._out)
            os.close(self._in)
            os.waitpid(self._process, 0)


class Page:
    """A page that is open."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def resize(self, width: int, height: int) -> None:
        """Give the window another size, in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._browser.ask("Emulation.setDeviceMetricsOverride", self._session, **metrics)

    def value(self, script: str) -> Any:
        """The value of an expression, or of the promise that it is. No policy of the page stops it."""
        options = {"awaitPromise": True, "returnByValue": True}
        told = self._browser.ask("Runtime.evaluate", self._session, expression=script, **options)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def picture(self) -> bytes:
        """A PNG of what the window shows."""
        return base64.b64decode(self._browser.ask("Page.captureScreenshot", self._session, format="png")["data"])

    def complaints(self) -> list[str]:
        """The lines of the console: those that scripts wrote, and those on what the browser did not like or stopped."""
        self.value("0")  # whatever was told before this answer has arrived
        found = []
        for told in self._browser.events:
            if told.get("sessionId") != self._session:
                continue
            if told["method"] == "Runtime.consoleAPICalled":
                found.append(" ".join(str(part.get("value")) for part in told["params"]["args"]))
            elif told["method"] == "Runtime.exceptionThrown":
                found.append(told["params"]["exceptionDetails"]["text"])
            elif told["method"] == "Log.entryAdded":
                found.append(told["params"]["entry"]["text"])
        return found


def _write(end: int, message: bytes) -> None:
    while message:
        message = message[os.write(end, message) :]
