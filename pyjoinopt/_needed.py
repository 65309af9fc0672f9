"""Are the packages there that this one needs? It may have come without them, as an archive in `--py-files` does.

To import this module is to check it, so it is imported before all that would fail with less to say.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("filelock", "platformdirs")


def check() -> None:
    """Raise if a package is missing.

    Raises:
        ModuleNotFoundError: with what is missing, why that may be, and what to do.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return
    archive = next((parent for parent in Path(__file__).parents if parent.is_file()), None)
    cause = (
        f"It was imported from the archive {archive}: --py-files and spark.submit.pyFiles bring the package itself, "
        "and nothing that it needs. "
        if archive
        else ""
    )
    raise ModuleNotFoundError(
        f"pyjoinopt needs {' and '.join(missing)}, not installed in {sys.executable}. {cause}Install them where the "
        f"driver runs: pip install pyjoinopt, or pip install {' '.join(missing)}",
        name=missing[0],
    )


check()
