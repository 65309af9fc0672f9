"""Where pyjoinopt keeps what is made once per user: compiled jars, a wrapped Java."""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The folder for what is made once per user. ``PYJOINOPT_CACHE_DIR`` moves it.

    Where it cannot be written, a private folder in the system's temporary one takes its place, with one warning.
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
        # A folder of a fixed name in a shared place could be prepared by somebody else, hence a fresh one.
        fallback = Path(tempfile.mkdtemp(prefix="pyjoinopt-"))
        warnings.warn(
            f"pyjoinopt cannot write to its cache folder {folder} ({error}); it uses {fallback}, for this run only. "
            "Set PYJOINOPT_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )
        return fallback
