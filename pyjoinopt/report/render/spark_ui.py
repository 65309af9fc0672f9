"""What the tab "Join orders" of Spark's UI shows beside a report: its pictures and its advice on estimates.

A History Server has no Python, so a worker draws them when the report is written, and they are in the event log. They
are compressed, since pictures of one report have some 16 to 80 kB, and a sixth to a twelfth of that in a log.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode

from pyjoinopt.report.model import GroupReport
from pyjoinopt.report.render.join_graph_svg import graph_svg
from pyjoinopt.report.render.orders_svg import AFTER, BEFORE, group_svg
from pyjoinopt.report.report_data import ReportData

#: A larger group has no pictures: nobody could read them.
MOST_RELATIONS = 60
#: Characters at most. Without pictures the page shows the orders as text.
MOST = 200_000


def packed_pictures(report: ReportData) -> str:
    """`{"groups": [{"before": SVG, "after": SVG, "graph": SVG}], "advice": [...]}` as JSON, by gzip, in Base64.

    Returns:
        An empty text if there is nothing to show, or if it is longer than `MOST`.
    """
    groups = [_pictures(number, group) for number, group in enumerate(report.all_groups, 1)]
    advice = report.advice()
    if not any(groups) and not advice:
        return ""
    packed = b64encode(gzip.compress(json.dumps({"groups": groups, "advice": advice}).encode(), 6, mtime=0)).decode()
    return packed if len(packed) <= MOST else ""


def _pictures(number: int, group: GroupReport) -> dict[str, str]:
    if len(group.relations) > MOST_RELATIONS:
        return {}
    orders = (BEFORE, AFTER) if group.changed else (AFTER,)
    pictures = {which: group_svg(group, number, (which,)) for which in orders}
    return {**pictures, **({"graph": graph_svg(group, number)} if group.edges else {})}
