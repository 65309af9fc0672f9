"""The assertions of `pyjoinopt.testing`, and the object behind the pytest fixture `joinopt`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyjoinopt.api.baselines import get, planned
from pyjoinopt.api.dataframe import join_report, optimize_joins, report_of, run_watching_pairs
from pyjoinopt.bridge.connect import is_connect
from pyjoinopt.bridge.products import cartesian_products
from pyjoinopt.bridge.shim import bridge_for, kind_of
from pyjoinopt.config import check_keywords
from pyjoinopt.feedback import listener
from pyjoinopt.feedback.baseline import Baseline
from pyjoinopt.feedback.match_baseline import differences
from pyjoinopt.report.executed_run import RunReport, run_report
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.util.same_rows import TOLERANCE, unmatched_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of each side that a failure shows.
_SHOWN = 5


def assert_reordered(df: DataFrame, **options: Any) -> None:
    """Fail unless the optimizer changes the order of the joins of a query. Does not run the query.

    Eliminated outer joins, avoided joins and hints alone do not count.

    Args:
        df: a DataFrame as written, or one that `optimize_joins` returned.
        **options: options of `optimize_joins`, for a DataFrame as written.

    Raises:
        AssertionError: no join group has another order; the message contains the report.
        ValueError, TypeError: no DataFrame, a wrong option, or options for an optimised DataFrame.

    Example:
        >>> assert_reordered(df, cost="c_out")    # doctest: +SKIP
    """
    report = _optimised(df, options)[1]
    if report.changed and any(group.changed for group in report.groups):
        return
    raise AssertionError(_message("the joins keep their written order", report))


def assert_no_cartesian(df: DataFrame, **options: Any) -> None:
    """Fail if the physical plan of the optimised query has a Cartesian product. Does not run the query.

    A product is a CartesianProduct or a BroadcastNestedLoopJoin without a condition, in the query or in a subquery. A
    semi or anti join is none, nor is a join with a side of at most one row, such as a total: they multiply no rows.

    Args:
        df: a classic DataFrame as written, or one that `optimize_joins` returned.
        **options: options of `optimize_joins`, for a DataFrame as written.

    Raises:
        AssertionError: there is a product; the message names it and contains the report.
        ValueError, TypeError: no DataFrame, a wrong option, or options for an optimised DataFrame.
        UnsupportedDataFrameError: a Spark Connect DataFrame.

    Example:
        >>> assert_no_cartesian(df)    # doctest: +SKIP
    """
    bridge_for(df)
    fast, report = _optimised(df, options)
    found = cartesian_products(fast)
    if found:
        count = "a Cartesian product" if len(found) == 1 else f"{len(found)} Cartesian products"
        raise AssertionError(_message("\n  ".join((f"the physical plan has {count}:", *found)), report))


def assert_max_rows(df: DataFrame, join: str | Iterable[str], n: int, **options: Any) -> None:
    """Run the optimised query, and fail if one of its joins gives more than `n` rows.

    Args:
        df: a classic DataFrame as written, or one that `optimize_joins` returned.
        join: the names of all relations below the join, as the report shows them: `["orders", "customers"]` or
            `"orders ⋈ customers"`. The order of the names does not matter.
        n: the largest allowed number of rows.
        **options: options of `optimize_joins`, for a DataFrame as written.

    Raises:
        AssertionError: the join gives more rows; the plan has no such join; or Spark did not count its rows. The
            message has the counted rows of all joins, and the report.
        ValueError, TypeError: a name that no relation has, fewer than two names, a wrong `n`, no DataFrame, a wrong
            option, or options for an optimised DataFrame.
        UnsupportedDataFrameError: a Spark Connect DataFrame.

    Example:
        >>> assert_max_rows(df, ["orders", "vip"], 1000, cost="c_out")    # doctest: +SKIP
    """
    wanted = _relations_of(join)
    if type(n) is not int:
        raise TypeError(f"n is {n!r} ({type(n).__name__}), but must be a whole number of rows")
    if n < 0:
        raise ValueError(f"n is {n}, but must be at least 0")
    shim = bridge_for(df)
    fast, report = _optimised(df, options, watch_pairs=True)
    watches = report._watches
    if not watches:  # no group of three; of an optimised DataFrame, no pair was watched
        watches = run_watching_pairs(fast, {"strategy": "none"})[1]._watches
    _check_names(wanted, [name for watch in watches for name in watch.names])
    executed = listener.executed_plan(shim, fast)
    expected: dict[int, tuple[tuple[str, ...], float]] = {}
    for watch in watches:
        expected.update(watch.located(executed["operators"]))
    run = run_report("optimised", executed, expected)
    joins = [(o.relations, int(o.rows)) for o in run.operators if len(o.relations) > 1 and o.rows is not None]
    counted = [rows for relations, rows in joins if set(relations) == set(wanted)]
    if counted and max(counted) <= n:
        return
    name = " ⋈ ".join(wanted)
    listed = [f"{' ⋈ '.join(relations)}: {rows:,} rows" for relations, rows in joins] or ["none"]
    if counted:
        problem = f"{name} gives {max(counted):,} rows, more than {n:,}"
    elif any(set(made.relations) == set(wanted) for group in report.groups for made in group.estimated_rows):
        problem = (
            f"Spark did not count the rows of {name}: it skipped the join because a side has no rows, or may have "
            "stopped early because of a LIMIT"
        )
    else:
        problem = f"the plan has no join of just {name}"
    raise AssertionError(_message("\n  ".join((problem, "Counted joins:", *listed)), report, run))


def assert_plan(df: DataFrame, baseline: Baseline | str, **options: Any) -> None:
    """Fail unless the optimizer's plan of a query is that of a baseline: the same orders and hints.

    The baseline is not used for planning, only compared. Does not run the query.

    Args:
        df: a classic DataFrame as written, or one that `optimize_joins` returned.
        baseline: what `pyjoinopt.baselines.pin` or `get` returned, its name in the store, or the path of a file that
            `export` wrote (it ends in `.json`).
        **options: options of `optimize_joins`, for a DataFrame as written; those of the baseline are used, too.

    Raises:
        AssertionError: the plan differs; the message has every difference, and the report.
        KeyError: the store has no baseline of this name.
        ValueError, TypeError: no DataFrame, no baseline, a wrong option, or options for an optimised DataFrame.
        OSError: the file cannot be read.

    Example:
        >>> assert_plan(df, pyjoinopt.baselines.pin(df, "daily"))    # doctest: +SKIP
    """
    expected = _baseline(baseline, options.get("store"), df)
    if report_of(df) is None:
        options = {"guard": "off", **expected.options, **options}
    found = differences(expected, planned(df, options))
    if found:
        problem = "\n  ".join((f"the plan is not that of the baseline {expected.name}:", *found))
        raise AssertionError(_message(problem, join_report(df, **options)))


def _baseline(given: Baseline | str, store: str | None, df: DataFrame) -> Baseline:
    if isinstance(given, Baseline):
        return given
    if not isinstance(given, str):
        raise TypeError(f"baseline is {given!r} ({type(given).__name__}), but must be a Baseline, a name or a path")
    if given.endswith(".json"):
        return Baseline.from_json(Path(given).read_text(encoding="utf-8"))
    return get(given, store, df)


def assert_same_rows(
    a: DataFrame | Sequence[Any],
    b: DataFrame | Sequence[Any],
    *,
    rtol: float = TOLERANCE[0],
    atol: float = TOLERANCE[1],
) -> None:
    """Fail unless two results have the same rows equally often, in any order. Runs and collects both.

    Columns are compared by position; their names and types must be equal, too (whether a column may be NULL is not
    compared). Values are equal as in Spark's GROUP BY: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.

    Args:
        a, b: DataFrames, or lists of rows (tuples or `Row`); a list has neither names nor types to compare.
        rtol, atol: relative and absolute tolerance of floats, as of `math.isclose`; 0 for both compares exactly. Sums
            of floats depend on the order of their addends, which a join order changes.

    Raises:
        AssertionError: the results differ; the message has the first differing rows, and the reports of DataFrames that
            `optimize_joins` returned.
        ValueError, TypeError: neither DataFrames nor lists of rows, or a tolerance that is negative or no number.

    Example:
        >>> assert_same_rows(df, df.optimize_joins())    # doctest: +SKIP
        >>> assert_same_rows([(1, 0.1 + 0.2)], [(1, 0.3)])
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is {value!r} ({type(value).__name__}), but must be a number")
        if not value >= 0:
            raise ValueError(f"{name} is {value!r}, but must be at least 0")
    for side in (a, b):
        _check_rows(side)
    if a is b:  # optimize_joins returns its argument if nothing changes
        return
    reports = [report for side in (a, b) if (report := report_of(side)) is not None]
    if (problem := _schemas(a, b)) is not None:
        raise AssertionError(_message(problem, *reports))
    one, other = _rows(a), _rows(b)
    rests = unmatched_rows(one, other, (rtol, atol))
    if not any(rests):
        return
    lines = [f"the rows differ: {len(one):,} rows in the first result, {len(other):,} in the second"]
    for name, rest in zip(("first", "second"), rests):
        if rest:
            lines.append(f"only in the {name} ({len(rest):,}):")
            lines += [f"  {tuple(row)!r}" for row in rest[:_SHOWN]]
            lines += ["  …"] if len(rest) > _SHOWN else []
    raise AssertionError(_message("\n  ".join(lines), *reports))


@dataclass(frozen=True)
class JoinOpt:
    """The assertions with options of their own: what the pytest fixture `joinopt` gives.

    Attributes:
        options: options of `optimize_joins` for every call; the keywords of a call take precedence. On Spark Connect
            only `strict` and `strategy` are used, because the server has the others.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_keywords(dict(self.options))

    def _for(self, df: Any, given: dict[str, Any]) -> dict[str, Any]:
        report = report_of(df)
        if report is not None and report.changed:
            return given  # optimised already, so only the options of this call would be a mistake
        own = {k: v for k, v in self.options.items() if not is_connect(df) or k in ("strategy", "strict")}
        return {**({} if is_connect(df) else {"guard": "off"}), **own, **given}

    def optimize(self, df: DataFrame, **options: Any) -> DataFrame:
        """`optimize_joins` with these options."""
        return optimize_joins(df, **self._for(df, options))

    def report(self, df: DataFrame, **options: Any) -> JoinReport:
        """`join_report` with these options."""
        return join_report(df, **self._for(df, options))

    def assert_reordered(self, df: DataFrame, **options: Any) -> None:
        """See `assert_reordered`."""
        assert_reordered(df, **self._for(df, options))

    def assert_no_cartesian(self, df: DataFrame, **options: Any) -> None:
        """See `assert_no_cartesian`."""
        assert_no_cartesian(df, **self._for(df, options))

    def assert_plan(self, df: DataFrame, baseline: Baseline | str, **options: Any) -> None:
        """See `assert_plan`."""
        assert_plan(df, baseline, **self._for(df, options))

    def assert_max_rows(self, df: DataFrame, join: str | Iterable[str], n: int, **options: Any) -> None:
        """See `assert_max_rows`."""
        assert_max_rows(df, join, n, **self._for(df, options))

    def assert_same_rows(
        self,
        a: DataFrame | Sequence[Any],
        b: DataFrame | Sequence[Any] | None = None,
        *,
        rtol: float = TOLERANCE[0],
        atol: float = TOLERANCE[1],
    ) -> None:
        """See `assert_same_rows`; without `b`, the DataFrame `a` is compared with its optimised self."""
        if b is None:
            if isinstance(a, (list, tuple)):
                raise TypeError("one list of rows cannot be optimised: pass a second result, or a DataFrame")
            b = self.optimize(a)
        assert_same_rows(a, b, rtol=rtol, atol=atol)


def _optimised(df: Any, options: dict[str, Any], watch_pairs: bool = False) -> tuple[Any, JoinReport]:
    """The optimised DataFrame with its report; a DataFrame that `optimize_joins` returned is used as it is."""
    check_keywords(options)
    if is_connect(df):
        return df, join_report(df, **options)
    bridge_for(df)
    report = report_of(df)
    if report is not None and report.changed:
        if options:
            names = ", ".join(sorted(options))
            raise ValueError(
                f"this DataFrame is the result of optimize_joins(), so {names} cannot change its plan: give the "
                "options to optimize_joins(), or pass the DataFrame as written"
            )
        return df, report
    if report is not None and not options and not watch_pairs:
        return df, report  # optimised already, and returned as it was
    if not is_connect(df):
        options = {"mode": "on", "guard": "off", **options}
    return run_watching_pairs(df, options) if watch_pairs else _with_report(optimize_joins(df, **options))


def _with_report(df: Any) -> tuple[Any, JoinReport]:
    return df, join_report(df)


def _relations_of(join: Any) -> list[str]:
    """The different names of a join: those of an iterable, or those in a text such as `(a ⋈ b) ⋈ c` or `a, b, c`."""
    if isinstance(join, str):
        parts = [join]
        for sign in "⋈⟕⟖⟗⋉▷,":
            parts = [piece for part in parts for piece in part.split(sign)]
        names = [part.strip(" ()") for part in parts]
    elif isinstance(join, Iterable) and not isinstance(join, Mapping):
        names = list(join)
    else:
        raise TypeError(f"join is {join!r} ({type(join).__name__}), but must be the names of its relations")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"join has {name!r} ({type(name).__name__}), but its relations are named by text")
    if len(set(names)) < 2 or not all(names):
        raise ValueError(f"join is {join!r}, but must name two relations or more")
    return list(dict.fromkeys(sorted(names) if isinstance(join, (set, frozenset)) else names))


def _check_names(wanted: Sequence[str], known: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in known]
    if not missing:
        return
    if not known:
        raise ValueError("this query has no join whose rows could be counted: see its report, df.explain_joins()")
    close = get_close_matches(missing[0], known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    there = ", ".join(dict.fromkeys(known))
    raise ValueError(f"no joined relation is named {', '.join(map(repr, missing))}: there are {there}{hint}")


def _check_rows(side: Any) -> None:
    if isinstance(side, (list, tuple)):
        for row in side:
            if not isinstance(row, (tuple, list)):
                raise TypeError(f"a row is {row!r} ({type(row).__name__}), but must be a tuple or a Row")
    elif not (hasattr(side, "collect") and hasattr(side, "schema")):
        raise TypeError(f"expected a pyspark.sql.DataFrame or a list of rows, got {kind_of(side)}")


def _rows(side: Any) -> list[Any]:
    return list(side) if isinstance(side, (list, tuple)) else list(side.collect())


def _schemas(a: Any, b: Any) -> str | None:
    """How the columns of two DataFrames differ; None if they do not, or if a side is a list of rows."""
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return None
    ours, theirs = ([(f.name, f.dataType.simpleString()) for f in side.schema.fields] for side in (a, b))
    if ours == theirs:
        return None
    if len(ours) != len(theirs):
        return f"the columns differ: {len(ours)} ({_names(ours)}) in the first result, {len(theirs)} ({_names(theirs)})"
    lines = [
        f"column {number}: {one[0]} {one[1]} in the first result, {other[0]} {other[1]} in the second"
        for number, (one, other) in enumerate(zip(ours, theirs), 1)
        if one != other
    ]
    return "\n  ".join(("the columns differ:", *lines))


def _names(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(name for name, _ in columns)


def _message(problem: str, *parts: JoinReport | RunReport) -> str:
    return "\n\n".join((problem, *(part.to_text() for part in parts)))
