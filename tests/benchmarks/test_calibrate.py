"""The constants of the cost model equal the committed results of `benchmarks/calibrate.py`."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibrate import FACTORS, Experiment, experiments, fit
from pyjoinopt.cost.constants import DEFAULT

KEPT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "calibrate.txt"


def test_the_defaults_are_what_the_committed_run_has_fitted() -> None:
    table = re.findall(r"^(\w+) +(\S+) +\S+$", KEPT.read_text(encoding="utf-8"), re.MULTILINE)
    fitted = {name: float(value) for name, value in table if name in asdict(DEFAULT)}
    assert fitted == asdict(DEFAULT)


def test_the_fit_finds_the_factors_that_times_are_made_of() -> None:
    """This requires that no two factors always occur together."""
    true = [0.05, 2e-8, 0.04, 1e-7, 8e-9, 8e-8, 1.5e-7, 0.05, 3e-8, 2e-8]
    done = [(one, float(np.dot(one.counts(), true))) for one in experiments(2_000_000)]
    found, explained = fit(done)
    assert all(ratio == pytest.approx(1, abs=0.02) for ratio in explained)
    for name, value in zip(FACTORS, true, strict=True):
        if name in ("query", "shuffle", "broadcast"):
            assert found[name] == pytest.approx(value, rel=0.1), name


def test_what_only_reads_moves_nothing() -> None:
    assert Experiment("", (1000, 0), (1, 0), 1.0).counts() == [1, 2000, *[0] * 8]
