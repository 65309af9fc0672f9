"""The baselines of a store as a table, one row each. Data for `pyjoinopt.baselines.show` and `joinopt_baselines`."""

from __future__ import annotations

from typing import Any

from pyjoinopt.feedback.baseline_store import BaselineStore
from pyjoinopt.feedback.match_baseline import order_text

#: The columns; `StoreFunctions.scala` has them with types.
COLUMNS = ("name", "orders", "hints", "options", "spark", "pinned")


def baseline_rows(store: BaselineStore) -> list[dict[str, Any]]:
    """A row for each baseline, by name. One that this release cannot read has the reason in `orders`."""
    rows = []
    for name, pinned in store.pinned().items():
        try:
            found = store.get(name)
        except ValueError as error:
            rows.append(_row(name, f"cannot be read: {error}", "", {}, "", pinned))
            continue
        if found is not None:
            orders = "; ".join(map(order_text, found.groups))
            hints = "; ".join(f"{h.strategy} of {'+'.join(h.on)}" for h in found.hints)
            rows.append(_row(name, orders, hints, dict(found.options), found.spark, pinned))
    return rows


def _row(*values: Any) -> dict[str, Any]:
    return dict(zip(COLUMNS, values, strict=True))
