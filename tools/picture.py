"""Write the picture of the README: the head of the page of a comparison, by Chromium.

python tools/picture.py out/demo/compare.html docs/compare.png
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

#: Width and height of the picture in pixels.
SIZE = (1080, 1240)


def main(page: Path, picture: Path) -> None:
    """Write the head of a page as a PNG."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium: install the package chromium of your distribution")
    if not page.exists():
        sys.exit(f"no {page}: `make demo` writes it")
    width, height = SIZE
    with sync_playwright() as api:
        browser = api.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector(".plot svg")
        shown.screenshot(path=picture)
        browser.close()
    print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
