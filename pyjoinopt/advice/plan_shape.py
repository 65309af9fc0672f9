"""A number for plans that differ in constants and column ids only.

It is made of the operators, the names of the columns that each of them reads, and the tables that are scanned. So no
constant of a query is kept. It is that of the plan before adaptive execution, which may change with the data.
"""

from __future__ import annotations

import hashlib
import re

from pyjoinopt.advice.operators import SCANS, WRAPPERS, kind
from pyjoinopt.advice.relation_names import scan_name
from pyjoinopt.eventlog.physical_plan import PlanNode

_COLUMN = re.compile(r"(\w+)#\d+")


def plan_shape(plan: PlanNode) -> str:
    """Twelve hexadecimal digits that plans of the same shape share."""
    done: list[str] = []
    for node in plan.post_order(subqueries=True):
        below = len(node.children) + len(node.subqueries)
        inputs = done[len(done) - below :]
        del done[len(done) - below :]
        if kind(node) in WRAPPERS and len(inputs) == 1:
            done.append(inputs[0])
            continue
        name = scan_name(node) if kind(node) in SCANS else ""
        columns = sorted(set(_COLUMN.findall(node.text)))
        text = "\n".join([kind(node), name, *columns, "inputs", *inputs])
        done.append(hashlib.sha256(text.encode()).hexdigest()[:12])
    return done[0]
