"""A run of hazard queries: sessions, tables, and the outcome of each query."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.guarantee.fuzz.entrances import Sessions, compare_entrances
from tests.guarantee.fuzz.extension import Options, enabled_session
from tests.support.generator import row_counter
from tests.support.hazard_queries import HazardGenerator
from tests.support.hazards import DATABASE, HazardTable, create_hazards, duckdb_hazards, hazard_tables
from tests.support.querytree import Query, Table, all_nodes
from tests.support.random_cost import RandomCost
from tests.support.render_dataframe import to_pyspark
from tests.support.render_sql import to_sql
from tests.support.run import session_for_tiny_tables
from tests.support.shrink import shrunk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Every second query may get any legal order.
OPTIONS: tuple[Options, ...] = (
    {"cost": "c_out"}, {"cost": RandomCost(1)}, {}, {"cost": RandomCost(2)}, {"strategy": "heuristic"},
    {"cost": RandomCost(3)}, {"cost": "c_out"},
)  # fmt: skip
SETTINGS: tuple[dict[str, str], ...] = ({}, {"spark.sql.autoBroadcastJoinThreshold": "-1"})
SHRINKS = 80


@dataclass
class HazardTally:
    """Counts of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[HazardFailure] = field(default_factory=list)


@dataclass
class HazardFailure:
    """A query whose optimised form differs, after shrinking."""

    number: int
    query: Query
    form: str
    options: Options
    settings: dict[str, str]
    reason: str

    def text(self, seed: int) -> str:
        """Everything needed to reproduce it."""
        used = {node.name for node in all_nodes(self.query) if isinstance(node, Table)}
        made = [s for table in hazard_tables(seed) if table.name in used for s in table.statements(True)]
        code = to_pyspark(self.query) if self.form == "dataframe" else to_sql(self.query)
        head = f"query {self.number} (--fuzz-seed {seed}), {self.form}, {self.options}, {self.settings}"
        return "\n".join([head, self.reason, "", *made, "", code, ""])


def sessions_for(spark: SparkSession, settings: dict[str, str]) -> Sessions:
    """A plain session and an enabled one, with the same settings."""
    both = session_for_tiny_tables(spark), session_for_tiny_tables(spark)
    for session in both:
        for key, value in settings.items():
            session.conf.set(key, value)
        session.sql(f"USE {DATABASE}")
    return Sessions(both[0], enabled_session(both[1]))


def run(
    spark: SparkSession, folder: Path, seed: int, numbers: range | list[int], most_failures: int = 3, log: int = 0
) -> HazardTally:
    """The queries with these numbers, half of them in each of two pairs of sessions."""
    tables: tuple[HazardTable, ...] = hazard_tables(seed)
    create_hazards(session_for_tiny_tables(spark), tables, str(folder))
    database = duckdb_hazards(tables)
    tally, started = HazardTally(), time.monotonic()

    def share(settings_number: int) -> None:
        settings = SETTINGS[settings_number]
        sessions = sessions_for(spark, settings)
        generator = HazardGenerator(seed, row_counter(database.cursor()))
        for number in numbers:
            if number % len(SETTINGS) != settings_number or len(tally.failures) >= most_failures:
                continue
            form, options = "dataframe" if number // 2 % 4 == 3 else "sql", OPTIONS[number % len(OPTIONS)]
            query = generator.query(number)
            try:
                tally.counts.update(compare_entrances(sessions, query, form, options))
            except Exception as error:
                small, reason = smallest(sessions, query, form, options, f"{type(error).__name__}: {error}")
                failure = HazardFailure(number, small, form, options, settings, reason)
                tally.failures.append(failure)
                if log:
                    print(failure.text(seed), flush=True)
            if log and tally.counts["queries"] % log == 0:
                print(f"{time.monotonic() - started:.0f} s: {dict(tally.counts)}", flush=True)

    with ThreadPoolExecutor(max_workers=len(SETTINGS)) as pool:
        for done in [pool.submit(share, number) for number in range(len(SETTINGS))]:
            done.result()
    tally.counts["seconds"] = round(time.monotonic() - started)
    return tally


def smallest(sessions: Sessions, query: Query, form: str, options: Options, reason: str) -> tuple[Query, str]:
    """The query, shrunk as long as it fails in the same way, and its final failure."""

    def complaint(candidate: Query) -> str | None:
        try:
            compare_entrances(sessions, candidate, form, options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    kind = reason.split(":")[:3]
    small = shrunk(query, lambda q: (complaint(q) or "").split(":")[:3] == kind, SHRINKS)
    return small, complaint(small) or reason
