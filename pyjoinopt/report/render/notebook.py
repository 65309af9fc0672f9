"""Detects IPython and notebooks, and displays a report there."""

from __future__ import annotations

from typing import Any


def in_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook, which shows HTML; false for IPython in a terminal."""
    shell = _shell()
    return shell is not None and getattr(shell, "kernel", None) is not None


def show(report: Any) -> bool:
    """Display a report in a notebook or in IPython; returns False if the code runs in neither."""
    if _shell() is None:
        return False
    from IPython import display

    display.display(report)
    return True


def _shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()
