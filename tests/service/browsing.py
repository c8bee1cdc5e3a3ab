"""The console in a real browser, and what must hold of it at the end of every test."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

SIZES = {"desk": (1100, 800), "phone": (390, 844)}
SCREENSHOTS = os.environ.get("PRIVCFS_SCREENSHOTS")
PICTURES = {  # in docs/service.md
    *("advice-phone", "ask-desk", "ask-phone", "answers-phone"),
    *("budget-desk", "ledger-desk", "keys-phone"),
    *("features-desk", "features-phone", "advice-features-phone"),
}
# Refusals that tests provoke, the first look without a key, and answers that a test loses on purpose.
EXPECTED = ("401", "402", "403", "404", "422", "ERR_FAILED")
needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="needs Debian's chromium: apt-get install chromium, as root"
)


class Browsed:
    """A page of the console that notes its errors and what it loads."""

    def __init__(self, browser: Any, url: str, size: str) -> None:
        width, height = SIZES[size]
        self.url = url
        self.heard: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": height}, has_touch=size == "phone")
        self.page.size = size
        self.page.on("console", lambda one: self.heard.append(one.text) if one.type == "error" else None)
        self.page.on("pageerror", lambda error: self.heard.append(f"uncaught: {error}"))
        self.page.on("request", lambda one: self.asked.append(one.url))
        self.page.goto(url)

    def close(self) -> None:
        """Nothing is wider than the screen, no script failed, nothing came from elsewhere, no key stands in a URL."""
        check_width(self.page)
        self.page.close()
        assert [text for text in self.heard if not any(one in text for one in EXPECTED)] == []
        assert all(url.startswith((self.url, "data:", "blob:")) for url in self.asked)
        assert not any("privcfs_" in url for url in self.asked), "no key in a URL"


def check_width(page: Any) -> None:
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth"), "wider than the screen"


def picture(page: Any, name: str) -> None:
    if SCREENSHOTS and f"{name}-{page.size}" in PICTURES:
        page.wait_for_timeout(300)
        page.screenshot(path=str(Path(SCREENSHOTS) / f"console-{name}-{page.size}.png"), full_page=True)


def enter_key(page: Any, secret: str) -> None:
    page.get_by_label("Your key").fill(secret)
    page.get_by_role("button", name="Sign in").click()


def sign_in(page: Any, secret: str) -> None:
    enter_key(page, secret)
    page.get_by_role("tab", name="Ask").wait_for()


def choose_node(page: Any, name: str) -> None:
    page.get_by_label("Node", exact=True).fill(name)
    page.get_by_text("candidates, the same whatever").wait_for(state="attached")
    page.keyboard.press("Escape")


def ask_about(page: Any, name: str, price: str = "1") -> None:
    choose_node(page, name)
    page.get_by_label("Price (epsilon)", exact=True).fill(price)
    page.get_by_role("button", name=f"Pay {price} and ask", disabled=False).click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
