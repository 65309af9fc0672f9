"""A hint builds only sides with a proven bound that fits, whatever the estimates and the configuration."""

from __future__ import annotations

import math

from hypothesis import event, given, settings
from hypothesis import strategies as st

from pyjoinopt.catalyst.planner.build_side import BROADCAST, HASH, MERGE, JoinConf
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.hints.choose_hint import join_hint
from pyjoinopt.hints.memory_limits import MemoryAllowance, slack_of
from pyjoinopt.plan.nodes import NO_HINT

MB, GB = 1 << 20, 1 << 30
TYPES = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
THRESHOLD = 10 * MB

counts = st.floats(0, 1e7) | st.sampled_from([0.0, 1.0, 1e9])
bounds = counts | st.just(math.inf)


@st.composite
def sides(draw: st.DrawFn) -> RelationStatistics:
    rows, width = draw(counts), draw(st.sampled_from([1.0, 8.0, 40.0, 3000.0]))
    bound = draw(bounds.map(lambda more: max(more, rows)))
    return RelationStatistics(rows, max(1.0, rows) * width, "test", draw(st.booleans()), upper_bound=bound)


@settings(max_examples=1000, deadline=None)
@given(
    join_type=st.sampled_from(TYPES), left=sides(), right=sides(), spark_bytes=st.tuples(bounds, bounds),
    times=st.sampled_from([1.0, 2.0, 8.0, 100.0]), keyed=st.booleans(),
)  # fmt: skip
def test_what_is_built_is_proved_to_stay_below_the_limit(
    join_type: str, left: RelationStatistics, right: RelationStatistics, spark_bytes: tuple[float, float],
    times: float, keyed: bool,
) -> None:  # fmt: skip
    allowance = MemoryAllowance(times, times / 2)
    chosen = join_hint(join_type, left, right, *spark_bytes, JoinConf(THRESHOLD), allowance, keyed=keyed)
    event(str(chosen.left or chosen.right))
    assert chosen.left is None or chosen.right is None
    for side, strategy in ((left, chosen.left), (right, chosen.right)):
        proved = side.upper_bound * side.bytes / max(1.0, side.rows)
        if strategy == BROADCAST:
            assert side.upper_bound < math.inf and proved <= THRESHOLD * times * (1 + 1e-9)
            other = right if side is left else left
            assert side.bytes <= THRESHOLD or (side.bytes <= 2 * THRESHOLD and other.bytes >= 10 * side.bytes)
        elif strategy == HASH:
            assert keyed and side.upper_bound < math.inf and proved <= THRESHOLD * times / 2 * (1 + 1e-9)
        else:
            assert strategy in (None, MERGE)


@settings(deadline=None)
@given(sides(), sides(), st.tuples(bounds, bounds), st.sampled_from([BROADCAST, HASH, MERGE]), st.booleans())
def test_what_the_query_contains_is_left_alone(
    left: RelationStatistics, right: RelationStatistics, spark_bytes: tuple[float, float], hint: str, on_left: bool
) -> None:
    existing = (hint, None) if on_left else (None, hint)
    assert join_hint("Inner", left, right, *spark_bytes, JoinConf(), existing=existing)[:2] == NO_HINT


@settings(deadline=None)
@given(sides(), sides(), st.tuples(bounds, bounds))
def test_who_switches_broadcasts_off_gets_no_hint(
    left: RelationStatistics, right: RelationStatistics, spark_bytes: tuple[float, float]
) -> None:
    assert join_hint("Inner", left, right, *spark_bytes, JoinConf(-1))[:2] == NO_HINT


@settings(deadline=None)
@given(
    driver=st.none() | st.integers(64 * MB, 256 * GB), memory=st.none() | st.integers(64 * MB, 4096 * GB),
    executors=st.integers(1, 1000), threshold=st.integers(1, GB),
)  # fmt: skip
def test_the_limit_by_memory(driver: int | None, memory: int | None, executors: int, threshold: int) -> None:
    """A sixteenth of the driver's heap and an eighth of an executor, from 8 to 100 times the threshold."""
    conf = {"spark.sql.autoBroadcastJoinThreshold": str(threshold), "pyjoinopt.executors": str(executors)}
    conf |= {"pyjoinopt.driver": str(driver)} if driver else {}
    conf |= {"pyjoinopt.memory": str(memory)} if memory else {}
    allowance = slack_of("auto", conf)
    limit = allowance.broadcast * threshold
    assert allowance.hashed == 8 and 8 <= allowance.broadcast <= 100
    for part in ([driver / 16] if driver else []) + ([memory / executors / 8] if memory else []):
        assert limit <= max(part, 8 * threshold) * (1 + 1e-9)
