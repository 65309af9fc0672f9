"""What the optimizer may ask of the JVM, as a small protocol, and its implementation over py4j.

The optimizer never sees py4j: it is handed a `Gateway` for one plan. A worker process that serves a JVM over pipes
implements the same protocol (`pyjoinopt/worker/serve.py`).
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
                `columns` (node number -> attribute numbers; those of which statistics are wanted), `distinct` (the
                same; those whose dictionaries are worth a look), `partitions` (node number -> filters on partition
                columns), `maxFiles`, `maxBytes`, `deadlineMs`, `totalMs`.
        """
        ...

    def samples(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        """Which rows of the relations' samples fulfil which predicates, in the protocol's JSON form.

        Args:
            relations: for each `node`, `id` and `schema` (its files), `columns` (attribute numbers), `predicates`
                (expressions), and perhaps `partitions` (filters that say which files), `blob` (a sample that was
                remembered) and `read` (open files if need be).
            **request: `give` (hand out samples that are not remembered yet), `rows`, `pieces`, `maxBytes`,
                `maxValues`, `deadlineMs`, `evaluateMs`.

        Returns:
            For each `hits` (bits as hexadecimal text, the first row lowest; None where nobody can tell), `rows`,
            `complete`, perhaps `blob`; or `missing`, with the `columns` of the sample that the JVM has if these are not
            all that was asked for.
        """
        ...

    def keys(self, relations: list[dict[str, Any]], **request: Any) -> list[list[bool | None]]:
        """Which sets of columns no two rows of some relations share.

        Args:
            relations: for each `node`, `id` and `schema` (its files), `sets` (of attribute numbers), and perhaps
                `partitions` (filters that say which files).
            **request: `deadlineMs`; `mostRows`, `mostBytes` and `mostParts` (row groups or stripes), beyond which a
                table is not read: 50 million, 512 MiB of the columns, 1,000.

        Returns:
            For each relation and set True if that is proved, False if it is not so or cannot be proved, None if it is
            not known yet.
        """
        ...


class AskingGateway:
    """The protocol over any way to ask: a subclass says how one question is asked.

    A question that names `relations` is one about samples, one that names `proofs` about keys, every other about
    statistics.
    """

    def __init__(self, export: Export) -> None:
        self.export = export

    def statistics(self, leaves: list[LogicalPlan], source: str, **request: Any) -> dict[int, dict[str, Any]]:
        numbers = [leaf.number for leaf in leaves if leaf.number is not None]
        if "partitions" in request:
            edits = Edits()
            filters = {number: [edits.expression(e) for e in found] for number, found in request["partitions"].items()}
            request = {**request, "partitions": filters, "exprs": edits.expressions}
        answer = self._ask({"nodes": numbers, "source": source, **request})
        return {int(number): entry for number, entry in answer["nodes"].items()}

    def samples(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        edits = Edits()
        asked = [
            {**one, **{name: [edits.expression(e) for e in one.get(name, ())] for name in ("predicates", "partitions")}}
            for one in relations
        ]
        return list(self._ask({**request, "relations": asked, "exprs": edits.expressions})["relations"])

    def keys(self, relations: list[dict[str, Any]], **request: Any) -> list[list[bool | None]]:
        edits = Edits()
        asked = [{**one, "partitions": [edits.expression(e) for e in one.get("partitions", ())]} for one in relations]
        return list(self._ask({**request, "proofs": asked, "exprs": edits.expressions})["proofs"])

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
    """One exported plan in a live driver; use it as a context manager so that the JVM lets go of the plan.

    Args:
        shim: the bridge in that driver.
        jdf: the JVM's side of a DataFrame.
        **options: `optimizing`, to be told IN and EXISTS as the joins that they come to; `strategy`, if one was asked
            for: the twins of Spark's rules are to see what these see.
    """

    def __init__(self, shim: Any, jdf: Any, **options: Any) -> None:
        self._shim = shim
        try:
            super().__init__(decode(shim.export(jdf, json.dumps(options))))
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

    def start_analysis(self, leaf: LogicalPlan, **request: Any) -> int:
        """Begin to analyse a relation with a Spark job.

        Args:
            leaf: a node of the export.
            **request: `columns` (attribute numbers), `rows` (to sample), `expected` (rows, roughly), `give` (hand out
                the sample), `description` (of the job).

        Returns:
            The number by which to ask for it.
        """
        try:
            return int(self._shim.startAnalysis(self.export.handle, json.dumps({"node": leaf.number, **request})))
        except Exception as error:
            raise _readable(error, "beginning an analysis") from error

    def analysis(self, number: int) -> dict[str, Any]:
        """How far an analysis is: `completed` and `tasks`; at the end once `result`, or `error`."""
        try:
            return dict(json.loads(self._shim.analysis(number)))
        except Exception as error:
            raise _readable(error, "analysing a relation") from error

    def cancel_analysis(self, number: int) -> None:
        """End an analysis and its Spark job."""
        self._shim.cancelAnalysis(number)

    def forget_samples(self) -> None:
        """Forget the samples that the JVM holds."""
        self._shim.forgetSamples()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        shim = self._shim
        asked = shim.samples if "relations" in request else shim.keys if "proofs" in request else shim.statistics
        try:
            return dict(json.loads(asked(self.export.handle, json.dumps(request))))
        except Exception as error:
            raise _readable(error, "reading statistics") from error


def _readable(error: Exception, doing: str) -> BridgeError:
    """The first line of a JVM error, without its Java stack."""
    if isinstance(error, BridgeError):
        return error
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else f"{type(error).__name__}: {error}"
    return BridgeError(f"the JVM failed while {doing}: {text.splitlines()[0] if text else 'no message'}")
