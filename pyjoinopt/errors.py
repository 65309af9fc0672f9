"""The errors of pyjoinopt. Each message has the cause and what to do.

    PyJoinOptError
    ├── JavaNotFoundError            no Java was found that can run Spark
    ├── SessionError                 there is no Spark session, or it was stopped
    ├── UnsupportedDataFrameError    a DataFrame without a JVM plan (Spark Connect), or a streaming one
    ├── BridgeError                  the JVM raised an error while a plan was exported or rebuilt
    ├── NotRunError                  true row counts were requested of a query that did not run
    ├── RefusedError                 strict mode: the optimizer would return its input
    ├── EventLogError                an event log does not exist, or no installed package can read it
    └── ShimError                    the jar could not be found, compiled or loaded
        └── UnsupportedSparkError    the jar does not support this version of Spark

Wrong options raise the built-in ValueError and TypeError.
"""

from __future__ import annotations


class PyJoinOptError(Exception):
    """Base class of all errors of this package."""


class JavaNotFoundError(PyJoinOptError):
    """No Java was found that can run the installed Spark."""


class SessionError(PyJoinOptError):
    """There is no Spark session, or it was stopped."""


class UnsupportedDataFrameError(PyJoinOptError):
    """The DataFrame has no plan in this process's JVM (Spark Connect), or it cannot be optimised."""


class BridgeError(PyJoinOptError):
    """The JVM raised an error while a plan was exported from it or rebuilt in it."""


class NotRunError(PyJoinOptError):
    """The DataFrame has not run its own query yet, so there are no true row counts."""


class RefusedError(PyJoinOptError):
    """With ``strict=True``: the optimizer would otherwise return its input."""


class EventLogError(PyJoinOptError):
    """An event log does not exist, or no installed package can read it."""


class ShimError(PyJoinOptError):
    """The jar with the JVM side of the bridge could not be found, compiled or loaded."""


class UnsupportedSparkError(ShimError):
    """The running Spark is older or newer than the versions that the jar supports."""
