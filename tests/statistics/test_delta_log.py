"""Facts that a Delta table's log proves, and facts that it does not. `tests/formats` has tables written by Delta."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_for
from tests.statistics.delta_logs import (
    MAPPED,
    SCHEMA,
    Action,
    add,
    checkpoint,
    commit,
    meta_data,
    protocol,
    remove,
    sidecars,
    vector,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyjoinopt.estimation.sources.registry import Known, Relation

pytestmark = pytest.mark.ci

HEAD = (protocol("deletionVectors", "v2Checkpoint"), meta_data())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    commit(tmp_path, 0, *HEAD, add(0, 50), add(1, 60))
    commit(tmp_path, 1, remove(0), add(2, 70, part="2"))
    commit(tmp_path, 2, add(3, 80, part=None, hides=vector(30)))
    return tmp_path


@pytest.fixture
def read(spark: SparkSession, stand_ins: Any) -> Any:
    """Table, version -> the frame."""
    from pyspark.sql import DataFrame

    def frame(table: Path, version: int, reads: str = "version") -> DataFrame:
        return DataFrame(stand_ins.delta(spark._jsparkSession, str(table), version, reads, SCHEMA, "part INT"), spark)

    return frame


def shown(df: DataFrame, **options: Any) -> dict[str, Any]:
    (row,) = pyjoinopt.statistics.show(df, **{"store": "off", **options}).to_dict("records")
    return row


def counted(df: DataFrame) -> tuple[float, bool]:
    row = shown(df)
    return row["rows"], row["exact"]


def known(df: DataFrame) -> tuple[Relation, Known]:
    from pyjoinopt.bridge.gateway import Py4jGateway
    from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics

    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        (one,) = LeafStatistics(gateway.statistics, gateway.export.nodes, "footers").known()
    return one


def test_rows_are_those_of_the_version(read: Any, table: Path) -> None:
    # The last file has 80 rows less 30 that a deletion vector hides.
    assert [counted(read(table, version)) for version in range(3)] == [(110, True), (130, True), (180, True)]


def test_a_query_without_a_version_reads_the_newest(read: Any, table: Path) -> None:
    # Delta has seen version 1, and looks again when the query runs.
    assert counted(read(table, 1, "latest")) == (180, True)


def test_columns_of_a_version(read: Any, table: Path) -> None:
    relation, facts = known(read(table, 2))
    columns = facts.columns
    assert (facts.source, facts.exact) == ("delta log", True)
    assert (columns["id"].min, columns["id"].max) == (100, 379)
    assert (columns["day"].min, columns["day"].max) == (18262, 18292)
    assert (columns["price"].min, columns["price"].max, columns["price"].nulls) == (0.5, 9.5, 6 + 7 + 8)
    assert (columns["part"].ndv, columns["part"].min, columns["part"].max, columns["part"].nulls) == (2, 1, 2, None)
    assert relation.files is not None and relation.files.count == 3


@pytest.mark.parametrize("order", ["add first", "remove first"])
def test_rows_that_a_commit_hides(read: Any, table: Path, order: str) -> None:
    # A file is added with its vector and removed without it, then added with another vector and removed with the first.
    for version, (before, after, rows) in enumerate([(None, 7, 173), (7, 20, 160)], start=3):
        actions = [
            add(2, 70, part="2", hides=vector(after, f"v{after}")),
            remove(2, hides=vector(before, f"v{before}") if before else None),
        ]
        commit(table, version, *(actions if order == "add first" else actions[::-1]))
        assert counted(read(table, version)) == (rows, True)
    assert known(read(table, 4))[0].files.count == 3  # type: ignore[union-attr]


def test_counts_of_nulls_beside_a_vector_are_old(read: Any, tmp_path: Path) -> None:
    one = add(1, 60, hides=vector(10))
    one["add"]["stats"] = json.dumps({**json.loads(one["add"]["stats"]), "tightBounds": False})
    commit(tmp_path, 0, *HEAD, one)
    facts = known(read(tmp_path, 0))[1]
    assert (facts.rows, facts.exact, facts.columns["price"].nulls, facts.columns["id"].nulls) == (50, True, None, 0)


def test_renamed_columns(read: Any, tmp_path: Path) -> None:
    commit(tmp_path, 0, protocol(version=2), meta_data("name"), add(0, 50, names=MAPPED), add(1, 60, names=MAPPED))
    facts = known(read(tmp_path, 0))[1]
    # The files' column `id` is what is now called `price`.
    assert (facts.columns["id"].min, facts.columns["id"].max, facts.columns["price"].max) == (0, 159, 9.5)
    assert (facts.rows, facts.exact, facts.columns["part"].ndv) == (110, True, 1)


def test_files_without_statistics_are_like_the_others(read: Any, table: Path) -> None:
    commit(table, 3, add(4, None, size=3000))
    # 180 rows in 3,000 bytes; as many in the 3,000 bytes for which the log has no statistics.
    assert counted(read(table, 3)) == (360, False)


# -- checkpoints ---------------------------------------------------------------------------------------------------

FILES: list[Action] = [add(1, 60), add(2, 70, part="2", hides=vector(9)), {"remove": {"path": "f0.parquet"}}]


def without_commits(table: Path, last: int) -> None:
    for version in range(last + 1):
        (table / "_delta_log" / f"{version:020}.json").unlink()


def written(spark: SparkSession, table: Path, kind: str) -> None:
    start = f"{1:020}.checkpoint"
    if kind == "one file":
        checkpoint(spark, table, f"{start}.parquet", [*HEAD, *FILES])
    elif kind == "parts":
        checkpoint(spark, table, f"{start}.{1:010}.{2:010}.parquet", [*HEAD, FILES[0]])
        checkpoint(spark, table, f"{start}.{2:010}.{2:010}.parquet", FILES[1:])
    else:
        named = sidecars(spark, table, [FILES[:1], FILES[1:]])
        name = f"{start}.parquet" if kind == "classic name" else f"{start}.{uuid.uuid4()}.{kind}"
        checkpoint(spark, table, name, [{"checkpointMetadata": {"version": 1}}, *HEAD, *named])


@pytest.mark.parametrize("kind", ["one file", "parts", "classic name", "json", "parquet"])
def test_checkpoints(spark: SparkSession, read: Any, table: Path, kind: str) -> None:
    written(spark, table, kind)
    without_commits(table, 1)
    assert counted(read(table, 1)) == (60 + 61, True)
    assert counted(read(table, 2)) == (60 + 61 + 50, True)
    commit(table, 3, remove(2, hides=vector(9)), add(2, 70, part="2", hides=vector(10, "y")))
    assert counted(read(table, 3)) == (60 + 60 + 50, True)
    assert known(read(table, 1))[1].columns["id"].max == 269


def test_half_a_checkpoint_is_none(spark: SparkSession, read: Any, table: Path) -> None:
    written(spark, table, "parts")
    (table / "_delta_log" / f"{1:020}.checkpoint.{2:010}.{2:010}.parquet").unlink()
    assert counted(read(table, 2)) == (180, True)  # by the commits
    without_commits(table, 1)
    assert not shown(read(table, 2))["exact"]


@pytest.mark.parametrize("damage", ["gone", "another"])
def test_a_sidecar_that_is_not_what_it_was(spark: SparkSession, read: Any, table: Path, damage: str) -> None:
    written(spark, table, "json")
    one, other = (table / "_delta_log" / "_sidecars").glob("*.parquet")
    one.unlink() if damage == "gone" else one.write_bytes(other.read_bytes()[:-1])
    row = shown(read(table, 2))
    assert row["source"] in ("size", "reported", "default") and not row["exact"] and row["rows"] > 0


# -- unknown statistics --------------------------------------------------------------------------------------------

STRANGE: dict[str, list[Action]] = {
    "feature": [protocol("deletionVectors", "zebra")],
    "version": [protocol(version=4)],
    "action": [{"zebra": {"stripes": 3}}],
    "field": [add(9, 1, zebra=True)],
    "removed": [remove(7)],
    "other vector": [remove(3, hides=vector(30, "another"))],
    "twice": [add(1, 60, hides=vector(5))],
    "mapping": [meta_data("zebra")],
    "hidden": [add(9, 10, hides=vector(11))],
}


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_not_known_is_not_exact(read: Any, table: Path, kind: str) -> None:
    commit(table, 3, *STRANGE[kind])
    row = shown(read(table, 3))
    assert not row["exact"] and row["source"] == "delta log" and 180 <= row["rows"] <= 240
    assert counted(read(table, 2)) == (180, True)


def test_no_protocol_and_no_schema(read: Any, tmp_path: Path) -> None:
    commit(tmp_path, 0, add(1, 60))
    assert counted(read(tmp_path, 0)) == (60, False)
    assert not known(read(tmp_path, 0))[1].columns


def test_nothing_but_unknown_actions_is_no_empty_table(read: Any, tmp_path: Path) -> None:
    commit(tmp_path, 0, *HEAD, {"zebra": {"path": "f0.parquet", "rows": 1000000}})
    row = shown(read(tmp_path, 0))
    assert row["rows"] > 0 and not row["exact"] and row["source"] != "delta log"
    commit(tmp_path, 1, *HEAD)
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, HEAD)))
    assert counted(read(tmp_path, 1)) == (0, True)


def test_an_unknown_action_in_a_checkpoint(spark: SparkSession, read: Any, table: Path) -> None:
    checkpoint(spark, table, f"{1:020}.checkpoint.parquet", [*HEAD, *FILES, {"zebra": {"stripes": 1}}])
    without_commits(table, 1)
    assert counted(read(table, 2)) == (60 + 61 + 50, False)


#: A name that is always the same: test processes compare the names of their cases.
STAGED = uuid.UUID(int=7)


@pytest.mark.parametrize(
    "name, exact",
    [
        (f"{3:020}.json.v2", False), (f"{1:020}.checkpoint.zebra", False), ("zebra", False),
        (f"_staged_commits/{3:020}.{STAGED}.json", False), (f"_staged_commits/{2:020}.{STAGED}.json", True),
        (f"{2:020}.crc", True), ("_last_checkpoint", True), (f"{0:020}.{2:020}.compacted.json", True),
    ],
)  # fmt: skip
def test_files_beside_the_log(read: Any, table: Path, name: str, exact: bool) -> None:
    path = table / "_delta_log" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    assert counted(read(table, 2)) == (180, exact)


@pytest.mark.parametrize("reads", ["partition", "changes"])
def test_other_indices_of_delta_are_not_the_table(read: Any, table: Path, reads: str) -> None:
    row = shown(read(table, 2, reads))
    assert not row["exact"] and row["source"] != "delta log"


@pytest.mark.parametrize("damage", ["missing", "garbled", "gone", "behind"])
def test_a_log_that_cannot_be_understood(read: Any, table: Path, damage: str) -> None:
    log = table / "_delta_log"
    if damage == "missing":
        (log / f"{1:020}.json").unlink()
    elif damage == "garbled":
        (log / f"{1:020}.json").write_text("{")
    elif damage == "gone":
        for file in log.iterdir():
            file.unlink()
    df = read(table, 3, "latest") if damage == "behind" else read(table, 2)
    row = shown(df)
    assert row["source"] in ("size", "reported", "default") and row["rows"] > 0 and not row["exact"]


def test_no_hint_for_what_is_not_proved(spark: SparkSession, read: Any, tmp_path: Path) -> None:
    def hints(version: int) -> list[str]:
        other = spark.range(200_000).selectExpr("id k", "id * 3 x")
        table = read(tmp_path, version)
        joined = table.join(other, table["id"] == other["k"])
        return [hint.strategy for hint in joined.optimize_joins(store="off")._pyjoinopt_report.hints]

    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "100kb")
    try:
        # Spark takes the table to be far too large. The log proves fifty rows.
        commit(tmp_path, 0, *HEAD, add(0, 50))
        assert hints(0) == ["BROADCAST"]
        # The first row is hidden of a file that is large by now.
        commit(tmp_path, 1, add(0, 50_000_000, hides=vector(1)), remove(0))
        assert hints(1) == []
        commit(tmp_path, 2, add(0, 50, hides=vector(2)), remove(0, hides=vector(1)))
        assert hints(2) == ["BROADCAST"]
        commit(tmp_path, 3, {"zebra": {"stripes": 1}})
        assert hints(3) == []
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


# -- stored statistics -----------------------------------------------------------------------------------------------


def test_a_version_is_remembered(read: Any, table: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    for version, rows in ((1, 130), (2, 180), (1, 130)):
        assert shown(read(table, version), store=store)["rows"] == rows


def test_a_table_that_is_made_anew_is_another_one(read: Any, table: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    assert shown(read(table, 0), store=store)["rows"] == 110
    commit(table, 0, *HEAD, add(5, 7))
    assert shown(read(table, 0), store=store)["rows"] == 7
