"""Takes the pictures of the documentation: reports in a headless Chromium, at two widths, light and dark.

    python docs/screenshots.py [--chromium PATH] [--ui]

Reports are made from the records that the tests keep (`tests/unit/report/records/`), so nothing has to run for them.
With `--ui` it runs the queries of the demo, and takes the tab of Spark's UI instead.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pyjoinopt.report.join_report import JoinReport  # noqa: E402
from pyjoinopt.report.render.html import render_page  # noqa: E402

IMAGES = ROOT / "docs" / "images"
#: What Chromium calls the reader's taste.
_THEMES = {"light": "1", "dark": "0"}
_WIDE, _NARROW = (1280, 760), (620, 1100)
_LINES = 300_000


def record(name: str) -> JoinReport:
    """A report that the tests keep."""
    path = ROOT / "tests" / "unit" / "report" / "records" / f"{name}.json"
    return JoinReport.from_dict(json.loads(path.read_text()))


def page_of(svg: str) -> str:
    """A picture alone on a page, as the viewer of a notebook has it."""
    return f"<!DOCTYPE html><html><head><meta charset='utf-8'/></head><body style='margin:0'>{svg}</body></html>"


def shoot(chromium: str, html: str, size: tuple[int, int], theme: str, name: str) -> None:
    """One picture."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        shoot_address(chromium, page.as_uri(), size, theme, name)


def shoot_address(chromium: str, address: str, size: tuple[int, int], theme: str, name: str) -> None:
    """A picture of a page with an address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}",
            f"--blink-settings=preferredColorScheme={_THEMES[theme]}", f"--window-size={size[0]},{size[1]}",
            f"--screenshot={IMAGES / name}.png", address,
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(IMAGES / f"{name}.png")


@contextmanager
def running_application() -> Iterator[str]:
    """The address of the UI of an application that has run the queries of the demo, and one that failed."""
    import pyjoinopt
    from benchmarks.common import session
    from pyjoinopt.demo import shop
    from pyjoinopt.demo.queries import QUERIES

    spark = session(**{"spark.ui.enabled": "true", "spark.app.name": "shop"})
    with tempfile.TemporaryDirectory() as folder:
        shop.generate(spark, Path(folder), _LINES)
        pyjoinopt.enable(spark)
        spark.conf.set("spark.pyjoinopt.timeout", "30s")
        for query in QUERIES:
            spark.sparkContext.setJobDescription(query.name)
            query.build(spark).collect()
        spark.sparkContext.setJobDescription("a query that fails")
        try:
            joins = "lines JOIN orders USING (order_id) JOIN shops USING (shop_id)"
            spark.sql(f"SELECT raise_error('no such city') FROM {joins}").collect()
        except Exception as error:
            print(type(error).__name__)
        time.sleep(2)  # reports and rows come after the end of a query
        yield str(spark.sparkContext.uiWebUrl)
        spark.stop()


def ui(chromium: str) -> None:
    """Take the tab of Spark's UI: the list, and the page of the first query."""
    with running_application() as address:
        shoot_address(chromium, f"{address}/joinorders/", (1280, 560), "light", "ui_list_light")
        for theme in _THEMES:
            shoot_address(chromium, f"{address}/joinorders/query/?id=1", (1280, 1180), theme, f"ui_query_{theme}")


def main() -> int:
    """Take them all."""
    parser = argparse.ArgumentParser(description="Take the pictures of the documentation.")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--ui", action="store_true", help="the tab of Spark's UI instead of reports")
    chosen = parser.parse_args()
    chromium = chosen.chromium
    if chromium is None:
        print("no Chromium here: name one with --chromium", file=sys.stderr)
        return 1
    if chosen.ui:
        ui(chromium)
        return 0
    report = record("demo_many_to_many")
    for theme in _THEMES:
        for width, size in (("wide", _WIDE), ("narrow", _NARROW)):
            shoot(chromium, render_page(report), size, theme, f"report_{theme}_{width}")
        outer = record("outer_joins_kept").to_graph_svg()
        shoot(chromium, page_of(outer), (860, 300), theme, f"join_graph_{theme}")
        run = record("tpch_05_run")
        shoot(chromium, render_page(run), (1280, 1250), theme, f"run_{theme}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
