"""Better join orders for PySpark: `import pyjoinopt`, then `df.optimize_joins()`.

Example:
    >>> import pyjoinopt
    >>> fast = slow.optimize_joins()    # doctest: +SKIP
    >>> slow.explain_joins()            # doctest: +SKIP
"""

from pyjoinopt import _needed, baselines, rules, statistics, testing  # noqa: F401  _needed first: it names what is missing
from pyjoinopt._version import __version__
from pyjoinopt.advice.result import Advice
from pyjoinopt.api.advise import advise
from pyjoinopt.api.analyze import Analysed, analyze
from pyjoinopt.api.compare import Comparison, compare
from pyjoinopt.api.dataframe import attach, explain_joins, join_report, optimize_joins
from pyjoinopt.api.recurring_queries import queries, query_history
from pyjoinopt.api.sessions import configure, disable, enable, is_enabled, last_reports
from pyjoinopt.api.tune import tune
from pyjoinopt.errors import (
    BridgeError,
    EventLogError,
    JavaNotFoundError,
    NotRunError,
    PyJoinOptError,
    RefusedError,
    SessionError,
    ShimError,
    UnsupportedDataFrameError,
    UnsupportedSparkError,
)  # fmt: skip
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.query_history import HistoryRun, QueryHistory
from pyjoinopt.report.rule_trace import RuleTrace
from pyjoinopt.report.tuning import TriedPlan, Tuning

attach()

__all__ = [
    "Advice", "Analysed", "BridgeError", "Comparison", "EventLogError", "HistoryRun", "JavaNotFoundError", "JoinReport",
    "NotRunError", "PyJoinOptError", "QueryHistory", "RefusedError", "RuleTrace", "SessionError", "ShimError",
    "TriedPlan", "Tuning", "UnsupportedDataFrameError", "UnsupportedSparkError",
    "__version__", "advise", "analyze", "baselines", "compare", "configure", "disable", "enable", "explain_joins",
    "is_enabled", "join_report", "last_reports", "optimize_joins", "queries", "query_history", "rules", "statistics",
    "testing", "tune",
]  # fmt: skip
