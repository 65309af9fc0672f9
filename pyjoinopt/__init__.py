"""Better join orders for PySpark: `import pyjoinopt`, then `df.optimize_joins()`.

Example:
    >>> import pyjoinopt
    >>> fast = slow.optimize_joins()    # doctest: +SKIP
    >>> slow.explain_joins()            # doctest: +SKIP
"""

from pyjoinopt import rules, statistics
from pyjoinopt._version import __version__
from pyjoinopt.api import attach, explain_joins, join_report, optimize_joins
from pyjoinopt.errors import (
    BridgeError,
    JavaNotFoundError,
    PyJoinOptError,
    RefusedError,
    SessionError,
    ShimError,
    UnsupportedDataFrameError,
    UnsupportedSparkError,
)  # fmt: skip
from pyjoinopt.report.record import JoinReport
from pyjoinopt.report.trace import RuleTrace
from pyjoinopt.sessions import configure, disable, enable, is_enabled, last_reports

attach()

__all__ = [
    "BridgeError", "JavaNotFoundError", "JoinReport", "PyJoinOptError", "RefusedError", "RuleTrace", "SessionError",
    "ShimError", "UnsupportedDataFrameError", "UnsupportedSparkError", "__version__", "configure", "disable", "enable",
    "explain_joins", "is_enabled", "join_report", "last_reports", "optimize_joins", "rules", "statistics",
]  # fmt: skip
