"""Requests of the optimizer to the JVM: a protocol, and its implementation over py4j.

The optimizer gets a `Gateway` for one plan and does not use py4j. A worker process implements the same protocol over
pipes (`pyjoinopt/worker/serve.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.bridge.encode import Edits
from pyjoinopt.errors import BridgeError
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(frozen=True)
class KeyProofs:
    """Which sets of columns are unique keys of their relations.

    Attributes:
        proofs: for each relation and set True if it is proved, False if it is not unique or cannot be proved, None if
            it is not known yet, or the reason why it is not read.
        read: bytes that proofs of keys have read for the session so far.
    """

    proofs: list[list[bool | str | None]]
    read: int = 0


class Gateway(Protocol):
    """Requests about one exported plan."""

    def statistics(self, leaves: list[LogicalPlan], source: str, **request: Any) -> dict[int, dict[str, Any]]:
        """Statistics of the leaves, by node number, in the JSON form of the protocol.

        Args:
            leaves: nodes of the export.
            source: "auto", "catalog", "footers" or "catalyst".
            **request: more of the protocol: `sources` (a list of sources instead), `identity` (return the files that
                they read), `columns` (node number -> attribute numbers of requested columns), `distinct` (the same, for
                columns whose dictionaries should be read), `partitions` (node number -> filters on partition
                columns), `maxFiles`, `maxBytes`, `deadlineMs`, `totalMs`.
        """
        ...

    def samples(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        """The rows of the relations' samples that satisfy each predicate, in the JSON form of the protocol.

        Args:
            relations: for each `node`, `id` and `schema` (its files), `columns` (attribute numbers), `predicates`
                (expressions), and perhaps `partitions` (filters that select files), `blob` (a stored sample),
                `hashed` (columns whose values are wanted as hashes) and `read` (open files if necessary).
            **request: `give` (return samples that are not stored yet), `rows`, `pieces`, `maxBytes`,
                `maxValues`, `deadlineMs`, `evaluateMs`, `thorough` (draw anew what lacks only columns of keys).

        Returns:
            For each `hits` (bits as hexadecimal text, the first row lowest; None if unknown), `rows`,
            `complete`, perhaps `blob` and `lacking` (columns of keys, which a sample drawn now would have); or
            `missing`, with the `columns` of the sample that the JVM has if these are not all requested columns.
        """
        ...

    def keys(self, relations: list[dict[str, Any]], **request: Any) -> KeyProofs:
        """Which sets of columns are unique keys of their relations.

        Args:
            relations: for each `node`, `id` and `schema` (its files), `sets` (of attribute numbers), and perhaps
                `partitions` (filters that select files).
            **request: `deadlineMs`; `mostRows`, `mostBytes` and `mostParts` (row groups or stripes), beyond which a
                table is not read: 50 million, 512 MiB of the columns, 1,000; `mostOfQuery` and `mostOfSession`, the
                bytes that all proofs of this export and of its session may read.
        """
        ...

    def settings(self, keys: Iterable[str]) -> dict[str, str] | None:
        """The session's values, or defaults, of settings that are not part of the export.

        Args:
            keys: names of settings; those that this Spark does not have are left out of the result.

        Returns:
            The values as text; None where they cannot be read, as in a worker process.
        """
        ...


class RequestGateway:
    """The protocol over single JSON requests; a subclass sends a request.

    A request with `relations` is for samples, one with `proofs` for keys, and every other one for statistics.
    """

    def __init__(self, export: Export) -> None:
        self.export = export

    def statistics(self, leaves: list[LogicalPlan], source: str, **request: Any) -> dict[int, dict[str, Any]]:
        numbers = [leaf.number for leaf in leaves if leaf.number is not None]
        if "partitions" in request:
            edits = Edits()
            filters = {number: [edits.expression(e) for e in found] for number, found in request["partitions"].items()}
            request = {**request, "partitions": filters, "exprs": edits.expressions}
        answer = self._send({"nodes": numbers, "source": source, **request})
        return {int(number): entry for number, entry in answer["nodes"].items()}

    def samples(self, relations: list[dict[str, Any]], **request: Any) -> list[dict[str, Any]]:
        edits = Edits()
        encoded = [
            {**one, **{name: [edits.expression(e) for e in one.get(name, ())] for name in ("predicates", "partitions")}}
            for one in relations
        ]
        return list(self._send({**request, "relations": encoded, "exprs": edits.expressions})["relations"])

    def keys(self, relations: list[dict[str, Any]], **request: Any) -> KeyProofs:
        edits = Edits()
        encoded = [{**one, "partitions": [edits.expression(e) for e in one.get("partitions", ())]} for one in relations]
        answer = self._send({**request, "proofs": encoded, "exprs": edits.expressions})
        return KeyProofs(list(answer["proofs"]), int(answer["read"]))

    def settings(self, keys: Iterable[str]) -> dict[str, str] | None:
        return None

    def edits(self, plan: LogicalPlan, may_widen: bool = False) -> dict[str, Any]:
        """The message that turns the exported plan into a new one.

        Args:
            plan: the new plan.
            may_widen: whether a column may become nullable.
        """
        edits = Edits()
        message = edits.message(edits.plan(plan), restore=self.export.root.number)
        if may_widen:
            message["mayWiden"] = True
        return message

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class Py4jGateway(RequestGateway):
    """Exports a plan in a running driver; use it as a context manager, which releases the plan in the JVM.

    Args:
        shim: the bridge in that driver.
        jdf: the JVM object of a DataFrame.
        **options: `optimizing`, to export subqueries as joins; `strategy`, the option of the call, since the
            reimplementations of Spark's rules get the same plan as these.
    """

    def __init__(self, shim: Any, jdf: Any, **options: Any) -> None:
        self._shim = shim
        self._jdf = jdf
        self._released = False
        try:
            super().__init__(decode(shim.export(jdf, json.dumps(options))))
        except Exception as error:
            raise _readable(error, "exporting the plan") from error

    def __enter__(self) -> Py4jGateway:
        return self

    def __exit__(self, *_: object) -> None:
        if self._released:
            return
        try:
            self._shim.release(self.export.handle)
        except Exception:  # the session may have been stopped, and the plan with it
            pass

    def rebuild(self, plan: LogicalPlan, may_widen: bool = False, release: bool = False) -> Any:
        """Build a plan in the JVM, which checks it against the original's output; returns the JVM Dataset.

        Args:
            plan: the new plan.
            may_widen: whether a column may become nullable.
            release: whether this is the last request, so that the JVM can release the exported plan with it.
        """
        message = self.edits(plan, may_widen)
        if release:
            message["release"] = self._released = True
        try:
            return self._shim.rebuild(self.export.handle, json.dumps(message))
        except Exception as error:
            raise _readable(error, "rebuilding the plan") from error

    def settings(self, keys: Iterable[str]) -> dict[str, str] | None:
        try:
            conf = self._jdf.sparkSession().conf()
            found = {key: conf.getOption(key) for key in keys}
            return {key: str(value.get()) for key, value in found.items() if value.isDefined()}
        except Exception as error:
            raise _readable(error, "reading settings") from error

    def start_analysis(self, leaf: LogicalPlan, **request: Any) -> int:
        """Start the analysis of a relation by a Spark job.

        Args:
            leaf: a node of the export.
            **request: `columns` (attribute numbers), `rows` (to sample), `expected` (estimated rows), `keys` (attribute
                numbers of columns whose values are sampled), `keyRows` (to sample by each of these), `give` (return
                the samples), `description` (of the job).

        Returns:
            The number of the analysis.
        """
        try:
            return int(self._shim.startAnalysis(self.export.handle, json.dumps({"node": leaf.number, **request})))
        except Exception as error:
            raise _readable(error, "starting an analysis") from error

    def analysis(self, number: int) -> dict[str, Any]:
        """The state of an analysis: `completed` and `tasks`; at the end `result` (once) or `error`."""
        try:
            return dict(json.loads(self._shim.analysis(number)))
        except Exception as error:
            raise _readable(error, "analysing a relation") from error

    def cancel_analysis(self, number: int) -> None:
        """Cancel an analysis and its Spark job."""
        self._shim.cancelAnalysis(number)

    def forget_samples(self) -> None:
        """Delete the samples in the JVM's memory."""
        self._shim.forgetSamples()

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        shim = self._shim
        method = shim.samples if "relations" in request else shim.keys if "proofs" in request else shim.statistics
        try:
            return dict(json.loads(method(self.export.handle, json.dumps(request))))
        except Exception as error:
            raise _readable(error, "reading statistics") from error


def _readable(error: Exception, doing: str) -> BridgeError:
    """A BridgeError with the first line of a JVM error, without its stack trace."""
    if isinstance(error, BridgeError):
        return error
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else f"{type(error).__name__}: {error}"
    return BridgeError(f"the JVM failed while {doing}: {text.splitlines()[0] if text else 'no message'}")
