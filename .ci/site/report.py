"""Check pages of the command report in a headless Chromium, as `check` does the site.

    python .ci/site/report.py FOLDER CHROMIUM [--shots FOLDER]

Each page must fit the width of a phone and of a desktop, in light and dark mode, without an error on
the console, as of a violated policy, and without a request; nothing may be cut off, texts of drawings
included, and the drawings must have the colors of the mode. Print each problem, and exit with status 1 if
there is one. ``--shots`` writes a picture of each page, width and mode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (390, 1280)  # pixels: of a phone, of a desktop
SMALLEST = 9  # pixels, of a line of text
MODES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_CUT_OFF = """[...document.querySelectorAll('main *')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.tagName.toLowerCase() + ' ' + e.textContent.trim().slice(0, 40))"""
_OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
    const boxes = [...svg.querySelectorAll('.axis text')].filter(e => e.textContent)
        .map(e => [e.getBoundingClientRect(), e.textContent]);
    return boxes.flatMap(([a, text], n) => boxes.slice(n + 1).filter(([b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3
    ).map(([, other]) => text + ' and ' + other));
})"""
_SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].filter(e => e.textContent).map(
    e => e.getBoundingClientRect().height))"""
_COLORS = """['body', 'svg text', 'svg .bar rect'].map(name => {
    const style = getComputedStyle(document.querySelector(name));
    return name === 'body' ? style.backgroundColor : style.fill;
})"""


class Visit:
    """A browser's tab of one width and mode, and the problems that it saw."""

    def __init__(self, browser: Browser, width: int, mode: Literal["light", "dark"]) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=mode)
        self.colors: list[str] = []
        self.seen: list[str] = []
        self._name = f"{width} pixels, {mode}"
        self.page.on("console", lambda message: self.seen.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        self.page.on("request", lambda request: self.seen.append(f"request: {request.url}"))

    def problems(self, path: Path) -> Iterator[str]:
        """Open a page, and yield its problems."""
        self.seen.clear()
        address = path.resolve().as_uri()
        self.page.goto(address, wait_until="load")
        self.seen.remove(f"request: {address}")
        self.page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        if (pixels := self.page.evaluate(_OVERFLOW)) > 0:
            self.seen.append(f"the page is {pixels} pixels too wide")
        self.seen += [f"cut off: {element}" for element in self.page.evaluate(_CUT_OFF)[:3]]
        self.seen += [f"overlapping: {texts}" for texts in self.page.evaluate(_OVERLAPS)[:3]]
        if (height := self.page.evaluate(_SMALLEST)) < SMALLEST:
            self.seen.append(f"text of a drawing is {height:.1f} pixels high")
        self.colors = self.page.evaluate(_COLORS)
        for problem in self.seen:
            yield f"{path.name} at {self._name}: {problem}"


def problems(browser: Browser, path: Path, shots: Path | None) -> Iterator[str]:
    """Yield the problems of a page in all widths and modes."""
    colors = []
    for mode in MODES:
        for width in WIDTHS:
            visit = Visit(browser, width, mode)
            yield from visit.problems(path)
            if shots is not None:
                visit.page.screenshot(path=shots / f"{path.stem}-{width}-{mode}.png", full_page=True)
            visit.page.close()
            colors.append(visit.colors)
    if any(light == dark for light, dark in zip(colors[0], colors[-1], strict=True)):
        yield f"{path.name}: light and dark must have colors of their own, got {colors[0]}, {colors[-1]}"


def main(arguments: list[str]) -> int:
    """Check the pages in the folder that the arguments name, and return the exit status."""
    from playwright.sync_api import sync_playwright

    folder, chromium, *options = arguments
    shots = Path(options[1]) if options[:1] == ["--shots"] else None
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    pages = sorted(Path(folder).glob("*.html"))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        found = [problem for path in pages for problem in problems(browser, path, shots)]
        browser.close()
    for problem in found:
        print(problem)
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, light and dark: {len(found)} problems")
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
