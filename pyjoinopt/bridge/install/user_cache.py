"""The cache folder of pyjoinopt, for compiled jars and a linked Java."""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The cache folder of the user, or the folder that ``PYJOINOPT_CACHE_DIR`` names.

    If it is not writable, a new folder in the system's temporary folder is used, with one warning.
    """
    wanted = os.environ.get("PYJOINOPT_CACHE_DIR")
    return _writable_folder(Path(wanted) if wanted else platformdirs.user_cache_path("pyjoinopt", appauthor=False))


@cache
def _writable_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        # Another user could create a folder of a fixed name in a shared place, so the name is random.
        fallback = Path(tempfile.mkdtemp(prefix="pyjoinopt-"))
        warnings.warn(
            f"pyjoinopt cannot write to its cache folder {folder} ({error}); it uses {fallback} for this run. "
            "Set PYJOINOPT_CACHE_DIR to a writable folder.",
            RuntimeWarning,
            stacklevel=2,
        )
        return fallback
