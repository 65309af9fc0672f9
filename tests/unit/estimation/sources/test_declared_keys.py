"""The effect of declared keys on estimates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics import Column, Known, declare, forget_declared, register, unregister

K, V = Attribute(0, 0, "k", "bigint"), Attribute(1, 1, "v", "string")
T = LogicalPlan("LogicalRelation", (), (K, V), number=0, info={"rel": {"kind": "file", "name": "Cat.db.Things"}})


@pytest.fixture(autouse=True)
def nothing_declared() -> Iterator[None]:
    yield
    forget_declared()


def known(**entry: Any) -> RelationStatistics:
    """Statistics of 1,000 rows, a tenth of whose keys are NULL and 500 of which are known to differ."""
    columns = {"0": {"ndv": 500, "nulls": 100}}
    reported = {"rows": 1000, "bytes": 9000, "source": "catalog", "exact": False, "columns": columns, **entry}
    return LeafStatistics(lambda *_, **__: {0: reported}, [T], "catalog")(T)


def test_a_declared_key_has_as_many_values_as_rows() -> None:
    assert known().column(0).key_values is None
    declare("things", key="K")
    # 1,000 rows less 100 NULLs.
    assert (known().column(0).ndv, known().column(0).key_values, known().column(0).guessed) == (900, 900, False)


def test_a_foreign_key_declares_what_it_refers_to() -> None:
    declare("parts", foreign_keys={"thing": "db.things.k"})
    assert known().column(0).key_values == 900
    forget_declared("things")
    assert known().column(0).key_values is None


def test_constraints_of_the_table_and_of_a_source() -> None:
    assert known(keys=[["k"], ["k", "v"]]).column(0).key_values == 900

    class Ours:
        name = "ours"

        def lookup(self, relation: Any) -> Known:
            return Known(rows=10.0, columns={"k": Column(ndv=3)}, keys=(("k",),))

    register(Ours())
    try:
        assert known().column(0).key_values == 10
    finally:
        unregister("ours")


def test_several_columns_are_no_key_each() -> None:
    declare("things", key=["k", "v"])
    assert known().column(0).key_values is None and known().column(1).ndv is None
    assert known().keys == frozenset({0b11}) and known().is_unique(0b11) and not known().is_unique(0b01)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError), ({"key": []}, ValueError), ({"key": [1]}, TypeError),
        ({"foreign_keys": {"a": "b"}}, ValueError), ({"foreign_keys": {"a": 1}}, TypeError),
    ],
)  # fmt: skip
def test_bad_declarations(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        declare("things", **arguments)
