"""Where a report can show itself as a picture."""

from __future__ import annotations

from typing import Any


def in_notebook() -> bool:
    """Whether the code runs in a notebook's kernel, which shows HTML; IPython in a terminal does not."""
    shell = _shell()
    return shell is not None and getattr(shell, "kernel", None) is not None


def show(report: Any) -> bool:
    """Show a report in the notebook, or IPython, that the code runs in; False if it runs in neither."""
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
