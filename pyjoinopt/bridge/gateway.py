"""What the optimizer may ask of the JVM, as a small protocol, and its implementation over py4j.

The optimizer never sees py4j: it is handed a `Gateway` for one plan. A worker process that serves a JVM over pipes
implements the same protocol (`pyjoinopt/worker.py`).
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.errors import BridgeError
from pyjoinopt.plan.nodes import LogicalPlan


class Gateway(Protocol):
    """Questions about one exported plan."""

    def statistics(self, leaves: list[LogicalPlan], source: str, **request: Any) -> dict[int, dict[str, Any]]:
        """What is known of the leaves, by node number, in the protocol's JSON form.

        Args:
            leaves: nodes of the export.
            source: "auto", "catalog", "footers" or "catalyst".
            **request: more of the protocol: `sources` (one by one instead), `identity` (tell which files they read),
                `columns` (node number -> attribute numbers), `maxFiles`, `maxBytes`, `deadlineMs`.
        """
        ...

    def catalyst_statistics(self, plans: list[LogicalPlan]) -> list[dict[str, Any]]:
        """Catalyst's own statistics (cost-based mode on) of plans that need not exist in the JVM yet."""
        ...


class AskingGateway:
    """The protocol over any way to ask: a subclass says how one question is asked."""

    def __init__(self, export: Export) -> None:
        self.export = export

    def statistics(self, leaves: list[LogicalPlan], source: str, **request: Any) -> dict[int, dict[str, Any]]:
        numbers = [leaf.number for leaf in leaves if leaf.number is not None]
        answer = self._ask({"nodes": numbers, "source": source, **request})
        return {int(number): entry for number, entry in answer["nodes"].items()}

    def catalyst_statistics(self, plans: list[LogicalPlan]) -> list[dict[str, Any]]:
        edits = Edits()
        references = [edits.plan(plan) for plan in plans]
        request = {"nodes": [], "source": "catalyst", "plans": references}
        answer = self._ask({**request, "exprs": edits.expressions, "edits": edits.nodes})
        return list(answer["plans"])

    def edits(self, plan: LogicalPlan, may_widen: bool = False) -> dict[str, Any]:
        """The message that turns the exported plan into this one.

        Args:
            plan: what the original became.
            may_widen: whether a column may be nullable that was not.
        """
        edits = Edits()
        message = edits.message(edits.plan(plan), restore=self.export.root.number)
        if may_widen:
            message["mayWiden"] = True
        return message

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class Py4jGateway(AskingGateway):
    """One exported plan in a live driver; use it as a context manager so that the JVM lets go of the plan."""

    def __init__(self, shim: Any, jdf: Any) -> None:
        self._shim = shim
        try:
            super().__init__(decode(shim.export(jdf, "{}")))
        except Exception as error:
            raise _readable(error, "exporting the plan") from error

    def __enter__(self) -> Py4jGateway:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._shim.release(self.export.handle)
        except Exception:  # the session may have stopped meanwhile; nothing is left to release then
            pass

    def rebuild(self, plan: LogicalPlan, may_widen: bool = False) -> Any:
        """The JVM Dataset of a plan; checked there against the original's output."""
        message = self.edits(plan, may_widen)
        try:
            return self._shim.rebuild(self.export.handle, json.dumps(message))
        except Exception as error:
            raise _readable(error, "rebuilding the plan") from error

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(json.loads(self._shim.statistics(self.export.handle, json.dumps(request))))
        except Exception as error:
            raise _readable(error, "reading statistics") from error


def _readable(error: Exception, doing: str) -> BridgeError:
    """The first line of a JVM error, without its Java stack."""
    if isinstance(error, BridgeError):
        return error
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else f"{type(error).__name__}: {error}"
    return BridgeError(f"the JVM failed while {doing}: {text.splitlines()[0] if text else 'no message'}")
