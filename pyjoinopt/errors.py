"""Every error that pyjoinopt raises on purpose. Each message says what went wrong and what to do about it.

    PyJoinOptError
    ├── JavaNotFoundError            no Java that can run Spark
    ├── SessionError                 no Spark session, or one that was stopped
    ├── UnsupportedDataFrameError    a DataFrame without a JVM plan (Spark Connect), or a streaming one
    ├── BridgeError                  the JVM failed while a plan was exported or rebuilt
    ├── NotRunError                  true row counts are asked of a query that did not run
    ├── RefusedError                 strict mode: the optimizer would have left something untouched
    └── ShimError                    the jar could not be found, compiled or loaded
        └── UnsupportedSparkError    a Spark that the jar does not know

Wrong options are programming mistakes and raise the built-in ValueError and TypeError.
"""

from __future__ import annotations


class PyJoinOptError(Exception):
    """Base of all errors of this package: ``except pyjoinopt.PyJoinOptError`` catches every one of them."""


class JavaNotFoundError(PyJoinOptError):
    """No Java was found that can run the installed Spark."""


class SessionError(PyJoinOptError):
    """There is no Spark session, or it was stopped."""


class UnsupportedDataFrameError(PyJoinOptError):
    """The DataFrame has no plan in this process's JVM (Spark Connect), or it cannot be optimised at all."""


class BridgeError(PyJoinOptError):
    """The JVM raised an error while a plan was exported from it or rebuilt in it."""


class NotRunError(PyJoinOptError):
    """The DataFrame did not run its own query yet, so there are no true row counts to be read."""


class RefusedError(PyJoinOptError):
    """Raised with ``strict=True`` where the optimizer would otherwise have returned its input untouched."""


class ShimError(PyJoinOptError):
    """The jar with the JVM side of the bridge could not be found, compiled or loaded."""


class UnsupportedSparkError(ShimError):
    """The running Spark is older or newer than what the jar was written for."""
