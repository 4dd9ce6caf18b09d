"""What the stories share: Chromium, visits that are watched, and signing in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    WebError,
    expect,
    sync_playwright,
)

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WAIT_MS = 60_000  # for what takes a moment; a busy machine needs more of them
expect.set_options(timeout=WAIT_MS)
PASSWORD = "correct horse battery"
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "color_scheme": "dark",
}
# Chromium writes a line of its own for each answer of 4xx; whether one was due, the test says.
_DRIVER = "GL Driver Message"  # a machine without a GPU draws in software, and says so
_REFUSED = "Failed to load resource: the server responded with a status of 4"
_TELL_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) => console.error(
    `${event.violatedDirective} was violated by ${event.blockedURI} at ${event.sourceFile}`))"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium without a window; skips the test where there is none."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visits:
    """Browser profiles of one test, and everything that its pages complained of or asked for."""

    browser: Browser
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)  # requests that leave this machine
    _contexts: list[BrowserContext] = field(default_factory=list)

    def profile(self, base_url: str, **options: Any) -> BrowserContext:
        """A profile without cookies, watched from its first page on."""
        context = self.browser.new_context(base_url=base_url, **options)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(_TELL_VIOLATIONS)
        context.on("console", self._told)
        context.on("weberror", self._failed)
        context.on("request", self._asked)
        self._contexts.append(context)
        return context

    def page(self, base_url: str, **options: Any) -> Page:
        """A page of a profile of its own."""
        return self.profile(base_url, **options).new_page()

    def forgive(self, *parts: str) -> None:
        """Forget complaints that hold one of *parts*: they are what the test brought about."""
        self.complaints = [
            told for told in self.complaints if not any(part in told for part in parts)
        ]

    def check(self) -> None:
        """Raise AssertionError for what no page may do, and forget it."""
        complaints, self.complaints = self.complaints, []
        strangers, self.strangers = self.strangers, []
        assert complaints == [], complaints  # a module that pytest does not rewrite
        assert strangers == [], strangers

    def end(self) -> None:
        """Close everything, then check."""
        for context in self._contexts:
            context.close()
        self.check()

    def _told(self, message: ConsoleMessage) -> None:
        if _DRIVER in message.text:
            return
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            self.complaints.append(f"{message.page and message.page.url}: {message.text}")

    def _failed(self, failure: WebError) -> None:
        self.complaints.append(str(failure.error))

    def _asked(self, request: Request) -> None:
        asked = urlsplit(request.url)
        if asked.scheme != "data" and asked.hostname != "127.0.0.1":
            self.strangers.append(request.url)


def sign_in(page: Page, name: str) -> None:
    """Fill in the form of the login page, wherever it came from; it is left once that was taken."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: urlsplit(url).path != "/login")
