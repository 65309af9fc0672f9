"""Times the rendering of a report of 60 relations in every format. The target is 200 ms for any of them.

    python -m benchmarks.report [--relations 60] [--repeat 20]
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.common import machine, measure, spread
from pyjoinopt.report.render.html import render_page
from tests.unit.report.test_pictures import report

TARGET = 200.0


def main() -> int:
    """Print a table of milliseconds; the exit code is 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relations", type=int, default=60, help="of the one group (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="times that each is done (default %(default)s)")
    chosen = parser.parse_args()
    made = report(chosen.relations)
    ways = {
        "text": made.to_text, "tree": made.to_tree,
        "svg, both orders": made.to_svg, "svg, join graph": made.to_graph_svg,
        "html": made.to_html, "html, a whole page": lambda: render_page(made), "json": made.to_json,
        "mermaid": made.to_mermaid, "dot": made.to_dot,
    }  # fmt: skip
    print(machine())
    slowest = 0.0
    for name, way in ways.items():
        times = measure(way, chosen.repeat, warm=1)
        slowest = max(slowest, times[len(times) // 2])
        print(f"{name:<20} {spread(times)} {len(way().encode()) / 1000:>8.0f} kB")
    print(f"The slowest takes {slowest:.0f} ms; the target is {TARGET:.0f} ms.")
    return int(slowest > TARGET)


if __name__ == "__main__":
    sys.exit(main())
