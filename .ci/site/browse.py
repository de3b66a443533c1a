"""The built site in headless Chromium: every page at the width of a desk and of a telephone.

python .ci/site/browse.py [--pictures FOLDER] [PAGE ...]
"""

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from links import pages_of
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[2]
WIDTHS = {"desk": (1280, 900), "telephone": (390, 800)}
MOST_BYTES = 1_000_000

#: What a page has loaded, in bytes, and what of it came from elsewhere, is broken or too wide.
MEASURE = """
const kinds = ["navigation", "resource"];
const loaded = kinds.flatMap(kind => performance.getEntriesByType(kind));
const images = [...document.images].filter(image => image.complete && !image.naturalWidth);
return {
  bytes: loaded.reduce((sum, one) => sum + one.decodedBodySize, 0),
  elsewhere: loaded.map(one => one.name).filter(name => !name.startsWith(location.origin)),
  broken: images.map(image => image.src),
  width: document.documentElement.scrollWidth,
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.set_page_load_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


def resized(driver: webdriver.Chrome, kind: str, dark: bool = False) -> None:
    width, height = WIDTHS[kind]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": kind == "telephone"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def seen(driver: webdriver.Chrome, kind: str, url: str) -> list[str]:
    """What is wrong with a page."""
    driver.get(url)
    page = driver.execute_script(MEASURE)
    log = driver.get_log("browser")
    found = [str(entry["message"]) for entry in log if entry["level"] == "SEVERE"]
    found += [f"loads {name}" for name in page["elsewhere"]]
    found += [f"{name} is broken" for name in page["broken"]]
    if page["bytes"] > MOST_BYTES:
        found.append(f"weighs {page['bytes']:,} bytes")
    if page["width"] > WIDTHS[kind][0]:
        found.append(f"is {page['width']} pixels wide")
    return found


def searched(driver: webdriver.Chrome, base: str, word: str) -> list[str]:
    """Where a search leads, as paths."""
    driver.get(base)
    driver.find_element(By.CSS_SELECTOR, "input.md-search__input").send_keys(word)
    found = WebDriverWait(driver, 20).until(
        lambda page: page.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")
    )
    return [str(link.get_attribute("href")).removeprefix(base) for link in found]


def pictured(driver: webdriver.Chrome, base: str, pages: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind in WIDTHS:
        for dark in (False, True):
            resized(driver, kind, dark)
            for page in pages:
                driver.get(base + page)
                # The theme keeps the scheme of the first page.
                driver.execute_script("localStorage.clear()")
                driver.refresh()
                name = page.removesuffix("index.html").strip("/").replace("/", "-") or "start"
                picture = folder / f"{name}-{kind}{'-dark' if dark else ''}.png"
                driver.save_screenshot(str(picture))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    parser.add_argument("page", nargs="*")
    arguments = parser.parse_args()
    site = ROOT / "target/site"
    pages = arguments.page or sorted(set(pages_of(site)) - {"404.html"})
    found = []
    with served(site) as base, browser() as driver:
        for kind in WIDTHS:
            resized(driver, kind)
            for page in pages:
                found += [f"{page}, {kind}: {what}" for what in seen(driver, kind, base + page)]
        resized(driver, "desk")
        if not any(path.startswith("guides/nulls/") for path in searched(driver, base, "nulls")):
            found.append("a search for nulls does not find the guide")
        if arguments.pictures:
            pictured(driver, base, pages, arguments.pictures)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(pages)} pages at {len(WIDTHS)} widths: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
