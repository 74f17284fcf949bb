"""Checks the links of the site: ``python links.py FOLDER``.

Each link to a page, a file or an anchor has to be there, each image has its file, and no page makes the reader's browser ask another host.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        #: Where readers can go.
        self.links: list[str] = []
        #: What a browser loads by itself.
        self.resources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value for name, value in attrs if value is not None}
        self.anchors.update(of[name] for name in ("id", "name") if name in of)
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        elif tag == "link" and "href" in of:
            self.resources.append(of["href"])
        elif "src" in of:
            self.resources.append(of["src"])


def problems(folder: Path) -> list[str]:
    """A sentence about each link that is wrong."""
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link in page.links + page.resources:
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.resources:
                    found.append(f"{name} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{name} links to {link}, which is not there")
            # Furo's button leads to the top of the page, as browsers define it.
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {link}, and there is no such anchor")
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text()
        if "url(http" in text or "url(//" in text or "@import" in text:
            found.append(f"{path.relative_to(folder)} loads something from another host")
    print(f"{sum(len(page.links) + len(page.resources) for page in pages.values()):,} links of {len(pages)} pages")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)
