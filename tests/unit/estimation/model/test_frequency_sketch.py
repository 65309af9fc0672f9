"""Sketches of frequencies against true frequencies: bounds that hold, joins that are estimated, and damaged input."""

from __future__ import annotations

import base64
import math
import zlib
from array import array
from random import Random

import pytest

from pyjoinopt.estimation.model.frequency_sketch import (
    DEPTH,
    WIDTH,
    FrequencySketch,
    meeting_rows,
    pair_domain,
    read,
)
from pyjoinopt.estimation.sources import analyzed_tables
from pyjoinopt.estimation.sources.registry import Column, Known

#: How often values occur, by how many values there are.
SHAPES = {
    "a key": lambda n: [1] * n,
    "even": lambda n: [7] * n,
    "one value": lambda n: [1000] + [0] * (n - 1),
    "one frequent value": lambda n: [50 * n] + [1] * (n - 1),
    "Zipf": lambda n: [max(1, int(10 * n / (i + 1))) for i in range(n)],
    "two sizes": lambda n: [1 + 99 * (i % 50 == 0) for i in range(n)],
}


class Functions:
    """Hash functions: a sign for each value, and a counter of it in each row."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def sketch(self, frequencies: dict[int, int]) -> FrequencySketch:
        counters = [array("q", [0] * WIDTH) for _ in range(DEPTH)]
        for value, count in frequencies.items():
            lots = Random(f"{self._seed} {value}")
            sign = lots.choice((1, -1))
            for row in counters:
                row[lots.randrange(WIDTH)] += sign * count
        return FrequencySketch("whole", float(sum(frequencies.values())), tuple(counters))


def norm(frequencies: dict[int, int]) -> float:
    return math.sqrt(sum(count * count for count in frequencies.values()))


def sent(sketch: FrequencySketch) -> dict[str, object]:
    """As the shim sends it."""
    numbers = array("q", [n for row in sketch.counters for n in row])
    numbers.byteswap()
    return {
        "kind": sketch.kind, "rows": sketch.rows,
        "counters": base64.b64encode(zlib.compress(numbers.tobytes())).decode("ascii"),
    }  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", [1, 40, 3000])
def test_the_norm_is_bounded_and_not_loosely(shape: str, values: int) -> None:
    frequencies = dict(enumerate(SHAPES[shape](values)))
    true = norm(frequencies)
    for seed in range(20 if values < 3000 else 8):
        sketch = Functions(seed).sketch(frequencies)
        assert true <= sketch.norm_bound <= 1.7 * true, (seed, true)
        assert max(frequencies.values()) <= sketch.norm_bound


def test_one_row_of_counters_is_too_small_as_seldom_as_the_proof_has_it() -> None:
    """By Cantelli's inequality a row falls short by a quarter with a chance of 1/17 at most, by a tenth of 0.29."""
    frequencies = dict(enumerate(SHAPES["a key"](400)))
    second = norm(frequencies) ** 2
    short = {0.25: 0, 0.1: 0}
    sketches = [Functions(seed).sketch(frequencies) for seed in range(100)]
    estimates = [sum(n * n for n in row) for sketch in sketches for row in sketch.counters]
    for part in short:
        short[part] = sum(x <= second * (1 - 1 / WIDTH - part) for x in estimates)
        chance = (2 / WIDTH) / (2 / WIDTH + part**2)
        assert short[part] <= len(estimates) * chance
    assert sum(estimates) / len(estimates) == pytest.approx(second, rel=0.02)


@pytest.mark.parametrize("seed", range(30))
def test_joins_are_estimated_within_their_error(seed: int) -> None:
    lots = Random(seed)
    tables = []
    for _ in range(2):
        low, many = lots.choice([0, 300, 900]), lots.randint(200, 1200)
        shape = lots.choice(list(SHAPES))
        tables.append({low + i: count for i, count in enumerate(SHAPES[shape](many)) if count})
    one, other = (Functions(seed).sketch(table) for table in tables)
    true = sum(count * tables[1].get(value, 0) for value, count in tables[0].items())
    rows, error = meeting_rows(one, other)
    assert abs(rows - true) <= 3 * error
    assert true <= one.norm_bound * other.norm_bound, "Cauchy and Schwarz"


def test_values_of_half_of_a_domain() -> None:
    """A key of 2,000 values, and 8,000 rows with 2,000 values, of which 1,000 are the key's."""
    key, facts = dict.fromkeys(range(2000), 1), dict.fromkeys(range(1000, 3000), 4)
    functions = Functions(1)
    one, other = functions.sketch(key), functions.sketch(facts)
    domain = pair_domain(one, other, 2000.0)
    assert domain is not None and 2000 * 8000 / domain == pytest.approx(4000, rel=0.2)
    whole = functions.sketch(dict.fromkeys(range(2000), 4))
    assert pair_domain(one, whole, 2000.0) is None, "what distinct counts say is right"
    nothing = pair_domain(one, functions.sketch(dict.fromkeys(range(5000, 7000), 4)), 2000.0)
    _, error = meeting_rows(one, functions.sketch(dict.fromkeys(range(5000, 7000), 4)))
    assert nothing is not None and 2000 * 8000 / nothing < 2 * error, "no more than the error of nothing"


def test_values_of_other_kinds_have_other_functions() -> None:
    one = Functions(1).sketch(dict.fromkeys(range(2000), 1))
    other = FrequencySketch("text", one.rows, one.counters)
    assert pair_domain(one, other, 20.0) is None and pair_domain(one, one, 20.0) is not None
    assert pair_domain(one, None, 20.0) is None
    assert pair_domain(one, Functions(1).sketch({}), 20.0) is None


def test_sent_and_stored() -> None:
    made = Functions(3).sketch(dict(enumerate(SHAPES["Zipf"](500))))
    found = read(sent(made))
    assert found is not None and (found.kind, found.rows, found.counters) == (made.kind, made.rows, made.counters)
    assert read(sent(made)) is found, "decoded once"
    known = Known(3.0, columns={"k": Column(ndv=2, details={"frequencies": sent(made)})}, exact=True)
    stored = analyzed_tables.from_bytes(analyzed_tables.to_bytes(known))
    assert stored is not None and read(stored.columns["k"].details["frequencies"]) is found
    before = analyzed_tables.from_bytes(b'[3.0, 8, true, "analyze", 1.0, {"k": {"ndv": 2}}]')  # of an earlier version
    assert before is not None and read(before.columns["k"].details.get("frequencies")) is None


@pytest.mark.parametrize(
    "given",
    [
        None, 7, {}, {"kind": "whole", "rows": 3}, {"kind": "whole", "rows": "3", "counters": ""},
        {"kind": "whole", "rows": 3, "counters": "%%%"}, {"kind": "whole", "rows": 3, "counters": "AAAA"},
        {"kind": "whole", "rows": 3, "counters": base64.b64encode(zlib.compress(b"12345678")).decode()},
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_is_none(given: object) -> None:
    assert read(given) is None
