"""Opens pages of reports in a headless Chromium: page.py BROWSER ARTEFACTS PAGE..

Nothing may be complained about or asked for from outside; a page whose name does not begin with `empty` has a chart. Screenshots
are kept.
"""

import pathlib
import sys

from playwright.sync_api import sync_playwright

browser_path, artefacts, pages = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(p) for p in sys.argv[3:]]
folder = browser_path.parent
flags = ["--no-sandbox", "--disable-gpu", "--single-process", "--no-zygote", "--disable-dev-shm-usage", "--headless=shell"]
# Fonts come with the browser; the machine may have none.
fonts = artefacts / "fonts.conf"
fonts.write_text(f"<fontconfig><dir>{folder / 'fonts'}</dir><cachedir>{artefacts / 'fonts'}</cachedir></fontconfig>")
environment = {"LD_LIBRARY_PATH": str(folder / "lib"), "FONTCONFIG_FILE": str(fonts), "HOME": str(artefacts)}

with sync_playwright() as playwright:
    for path in pages:
        browser = playwright.chromium.launch(executable_path=str(browser_path), args=flags, env=environment)
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        told, requests = [], []
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        page.screenshot(path=str(artefacts / f"report-{path.stem}.png"), full_page=True)
        drawn = page.locator("svg.chart, .tile").count()
        boxes = [drawing.bounding_box() for drawing in page.locator("svg.chart").all()]
        heading = page.locator("h1").bounding_box()
        outside = [url for url in requests if not url.startswith(("file:", "data:"))]
        browser.close()
        assert not told, f"{path.name}: {told}"
        assert not outside, f"{path.name}: {outside}"
        assert (drawn > 0) == (not path.stem.startswith("empty")), f"{path.name}: {drawn} drawings"
        assert all(box and box["width"] > 300 and box["height"] > 60 for box in boxes), f"{path.name}: {boxes}"
        assert heading and heading["height"] > 20, f"{path.name}: its title is not seen"
        print(f"{path.name}: {drawn} drawings")
