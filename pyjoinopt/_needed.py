"""Checks that the required packages are installed, which `--py-files` and `--packages` do not bring along.

Importing this module runs the check, so it is imported first, to raise its error message before a plain ImportError.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("filelock", "platformdirs")


def check() -> None:
    """Check the required packages.

    Raises:
        ModuleNotFoundError: a package is missing; the message has the cause and how to install it.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return
    archive = next((parent for parent in Path(__file__).parents if parent.is_file()), None)
    cause = (
        f"It was imported from the archive {archive}: --py-files, spark.submit.pyFiles and --packages contain the "
        "package without its dependencies. "
        if archive
        else ""
    )
    raise ModuleNotFoundError(
        f"pyjoinopt needs {' and '.join(missing)}, not installed in {sys.executable}. {cause}Install them where the "
        f"driver runs: pip install pyjoinopt, or pip install {' '.join(missing)}",
        name=missing[0],
    )


check()
