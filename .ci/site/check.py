"""Check the built site in a headless Chromium: what readers see, find and follow.

    python .ci/site/check.py SITE CHROMIUM [--shots FOLDER]

Serve the folder SITE on 127.0.0.1. Each page must fit the width of a phone and of a desktop, without an
error on the console and without a request to another host. It must have the version. On a desktop no block
of code may scroll sideways, on a phone no table with names of columns in its cells, and no button may be on
the text that it copies. The search must find what `SEARCHES` names, and what `FIRST` names before all else,
also where the site is opened from its folder. No link within the site may be broken; links to other hosts
must be absolute and https. Print each problem, and exit with status 1 if there is one. ``--shots`` writes
a picture of each page at both widths, light and dark.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urldefrag, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (360, 1280)  # pixels: of a phone, of a desktop
# Words, and the page that a search for them must find.
SEARCHES = {
    "dead letters": "how-to/dead_letters.html",
    "exactly once": "how-to/exactly_once.html",
    "quarantine": "how-to/replay_quarantine.html",
    "EventProcessor": "reference/cloudevents_kafka.html",
    "SequenceTracker": "reference/extensions.html",
    "LocalBroker": "reference/testing.html",
}
# Words, and the page that a search for them must find first.
FIRST = {
    "tombstone": "how-to/tombstones.html",
    "retry": "how-to/dead_letters.html",
    "logging": "how-to/logging.html",
    "metrics": "how-to/metrics.html",
    "FastAPI": "how-to/fastapi.html",
}
_LINKS = "[...document.querySelectorAll('a[href],img[src]')].map(e => e.href || e.src)"
_ANCHORS = "[...document.querySelectorAll('[id]')].map(e => e.id)"
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What is cut off at the right, without a bar to scroll it.
_CUT_OFF = """[...document.querySelectorAll('article *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) return false;
    for (let up = e; up; up = up.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
    return true;
}).map(e => e.tagName.toLowerCase() + ' ' + e.textContent.trim().slice(0, 40))"""


# Text that is Markdown's own marks, and blocks of code that became text.
_UNRENDERED = r"""[...document.querySelectorAll('article :is(p, li, td)')].filter(e => {
    const long = code => code.textContent.split('\n').length > 2 && !code.closest('pre');
    if ([...e.querySelectorAll('code')].some(long)) return true;
    const copy = e.cloneNode(true);
    copy.querySelectorAll('code, pre').forEach(code => code.remove());
    return /```|\]\(|^:::|(^|\s)\*\*\w/.test(copy.textContent);
}).map(e => e.textContent.trim().slice(0, 40))"""
# Blocks of code, and tables that stand in rows on a phone, that scroll sideways.
_SCROLLING = """[...document.querySelectorAll('article pre > code')].filter(
    e => e.scrollWidth > e.clientWidth + 1
).map(e => e.textContent.trim().slice(0, 40))"""
_WIDE_TABLES = """[...document.querySelectorAll('article table[data-stacked]')].filter(
    e => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth
).map(e => e.textContent.trim().slice(0, 40))"""
# Buttons that are on the text which they copy.
_COVERING = """[...document.querySelectorAll('article pre')].filter(e => {
    const button = e.querySelector('.md-code__nav'), code = e.querySelector('code');
    return button && button.getBoundingClientRect().left < code.getBoundingClientRect().right - 1;
}).map(e => e.textContent.trim().slice(0, 40))"""


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1, and return its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def pages_of(site: Path) -> list[str]:
    """Return the paths of all pages of a site."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


class Visit:
    """A browser's tab of one width, and the problems that it saw."""

    def __init__(
        self,
        browser: Browser,
        width: int,
        address: str,
        shots: Path | None,
        mode: Literal["light", "dark"] = "light",
    ) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=mode)
        self._mode = mode
        self.width = width
        self.shots = shots
        self._address = address
        self._seen: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._seen.append(f"error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self._seen.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self._seen.append(f"a request to another host: {request.url}")

    def problems(self, path: str) -> Iterator[str]:
        """Open a page, and yield its problems."""
        self._seen.clear()
        self.page.goto(self._address + path, wait_until="load")
        if (pixels := self.page.evaluate(_OVERFLOW)) > 0:
            self._seen.append(f"the page is {pixels} pixels too wide")
        self._seen += [f"cut off: {element}" for element in self.page.evaluate(_CUT_OFF)[:3]]
        self._seen += [f"not rendered: {text}" for text in self.page.evaluate(_UNRENDERED)[:3]]
        if self.width == max(WIDTHS):
            self._seen += [f"scrolls sideways: {text}" for text in self.page.evaluate(_SCROLLING)[:3]]
        else:
            self._seen += [f"a table is too wide: {text}" for text in self.page.evaluate(_WIDE_TABLES)[:3]]
        self._seen += [f"a button covers: {text}" for text in self.page.evaluate(_COVERING)[:3]]
        if not re.search(r"\d+\.\d+\.\d+", self.page.inner_text("header")):
            self._seen.append("the version is missing")
        if self.shots is not None:
            name = path.removesuffix(".html").replace("/", "-")
            picture = f"{name}-{self.width}-{self._mode}.png"
            self.page.screenshot(path=self.shots / picture, full_page=True)
        for problem in self._seen:
            yield f"{path} at {self.width} pixels: {problem}"

    def search(self, words: str, expected: str, *, first: bool = False) -> Iterator[str]:
        """Search for words, and yield a problem if the expected page is not found, or not before others."""
        self.page.goto(f"{self._address}index.html", wait_until="load")
        self.page.keyboard.press("s")
        self.page.keyboard.type(words)
        self.page.wait_for_selector(".md-search-result__item", timeout=20_000)
        links = self.page.eval_on_selector_all(".md-search-result__link", "all => all.map(a => a.href)")
        found = [re.split("[?#]", link.removeprefix(self._address))[0] for link in links]
        if expected not in found[: 1 if first else None]:
            where = " first" if first else ""
            seen = ", ".join(dict.fromkeys(found)) or "nothing"
            yield f"a search for {words!r} must find {expected}{where}, found {seen}"


def link_problems(links: dict[str, list[str]], anchors: dict[str, set[str]], address: str) -> Iterator[str]:
    """Yield the links, by their pages, that lead nowhere; ``anchors`` are those of each page."""
    for path, targets in links.items():
        for target in sorted(set(targets)):
            url, anchor = urldefrag(target)
            if not url.startswith(address):
                parts = urlsplit(url)
                if parts.scheme != "https" or "." not in parts.netloc:
                    yield f"{path}: a link to another host must be absolute and https, got {target}"
                continue
            name = unquote(urlsplit(url).path).lstrip("/") or "index.html"
            if name not in anchors:
                yield f"{path}: {target.removeprefix(address)} does not exist"
            elif anchor and unquote(anchor) not in anchors[name]:
                yield f"{path}: {target.removeprefix(address)} has no such anchor"


def check(browser: Browser, site: Path, address: str, shots: Path | None) -> Iterator[str]:
    """Yield all problems of a site."""
    pages = pages_of(site)
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    anchors: dict[str, set[str]] = {name: set() for name in files}
    links = {}
    for width in WIDTHS:
        visit = Visit(browser, width, address, shots)
        for path in pages:
            yield from visit.problems(path)
            links[path] = visit.page.evaluate(_LINKS)
            anchors[path] = set(visit.page.evaluate(_ANCHORS))
        for words, expected in SEARCHES.items():
            yield from visit.search(words, expected)
        for words, expected in FIRST.items():
            yield from visit.search(words, expected, first=True)
        dark = Visit(browser, width, address, shots, "dark")
        for path in pages if shots is not None else ():
            yield from dark.problems(path)
    opened = Visit(browser, WIDTHS[-1], f"{site.resolve().as_uri()}/", None)
    for words, expected in [*SEARCHES.items()][:1]:  # without a server
        yield from opened.search(words, expected)
    yield from link_problems(links, anchors, address)


def main(arguments: list[str]) -> int:
    """Check the site that the arguments name, and return the exit status."""
    from playwright.sync_api import sync_playwright

    site, chromium, *options = arguments
    shots = Path(options[1]) if options[:1] == ["--shots"] else None
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with served(Path(site)) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=[alone])
        count = 0
        for count, problem in enumerate(check(browser, Path(site), address, shots), 1):  # noqa: B007
            print(problem, flush=True)
        browser.close()
    pages = len(pages_of(Path(site)))
    print(f"{pages} pages at {len(WIDTHS)} widths, {len(SEARCHES) + len(FIRST)} searches: {count} problems")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
