"""Which relations of a join group are those of a baseline: a match of two small labelled hypergraphs.

    baseline:  sales - dates (s_date = d_date)      group:  sales_2 - dates   (s_date = d_date)
               sales - dates_2 (s_ship = d_date)            sales_2 - dates_3 (s_ship = d_date)

Relations are labelled with the tables that they read. Where no two have the same label, labels are enough, and the
query may have other predicates than it had. Of several with the same label (a table that is joined with itself) each is
recognised by its neighbours: its label is refined by the columns by which it is joined and by the labels at the other
end, again and again until all differ. Relations that remain equal have equal neighbours, and are matched in the order
of their names: another match would give an order of the same shape.

Source: the refinement is that of Weisfeiler and Leman (1968), one-dimensional, over hyperedges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyjoinopt.feedback.baseline import Baseline, PinnedGroup, pinned_group, pinned_names
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan.digest import digest


@dataclass(frozen=True, eq=False)
class PinnedOrder:
    """The order of a baseline for one join group.

    Attributes:
        baseline: its name.
        group: of the baseline.
        tree: the order, over the vertices of the group at hand; whether it is legal is not known.
    """

    baseline: str
    group: PinnedGroup
    tree: JoinTree


def pinned_order(graph: JoinGraph, baselines: Sequence[Baseline]) -> PinnedOrder | None:
    """The order of a group in the first baseline that has one; None if no baseline has this group."""
    here, names = pinned_group(graph), pinned_names(graph)
    for name, group in ((baseline.name, group) for baseline in baselines for group in baseline.groups):
        found = _matched(group, here)
        if found is not None:
            vertices = {pinned: names.index(same) for pinned, same in found.items()}
            return PinnedOrder(name, group, group.tree(vertices))
    return None


def match(group: PinnedGroup, other: PinnedGroup) -> dict[str, str] | None:
    """Relation of one group -> the same relation of the other one; None if they are other groups.

    >>> def of(*reads):
    ...     return PinnedGroup({f"r{i}": (table,) for i, table in enumerate(reads)}, (), ())
    >>> match(of("a", "b", "c"), of("c", "a", "b"))
    {'r0': 'r1', 'r1': 'r2', 'r2': 'r0'}
    >>> match(of("a", "b", "c"), of("a", "b", "d")) is None
    True
    """
    mine, theirs = ({name: digest(*tables) for name, tables in one.relations.items()} for one in (group, other))
    if Counter(mine.values()) != Counter(theirs.values()):
        return None
    for number in range(len(mine)):
        shared = {label for label, times in Counter(mine.values()).items() if times > 1}
        if not shared:
            break
        finer = _refined(group, mine, shared), _refined(other, theirs, shared)
        if Counter(finer[0].values()) != Counter(finer[1].values()):
            if number == 0:
                return None  # relations that read one table are joined by other columns than they were
            break
        mine, theirs = finer
    in_order = [sorted(known, key=lambda name: (known[name], name)) for known in (mine, theirs)]
    return dict(sorted(zip(*in_order, strict=True)))


def differences(baseline: Baseline, plan: Baseline) -> list[str]:
    """How a plan differs from a baseline: one sentence for each group and each hint; none if it does not.

    Two orders are the same if their joins have the same relations, whichever side these are on.
    """
    found = []
    others = list(plan.groups)
    for group in baseline.groups:
        matched = ((other, names) for other in others if (names := _matched(group, other)) is not None)
        other, names = next(matched, (None, {}))
        if other is None:
            found.append(f"the plan has no join group of {', '.join(group.relations)}, joined by the same columns")
            continue
        others.remove(other)
        if _sets(group, names) != _sets(other, {name: name for name in other.relations}):
            found.append(f"the order is {order_text(other)}, not {order_text(group, names)}")
    found += [f"the join group {order_text(group)} is not in the baseline" for group in others]
    for one, word in ((baseline, "not in the plan"), (plan, "not in the baseline")):
        rest = set(one.hints) - set((plan if one is baseline else baseline).hints)
        found += sorted(
            f"the hint {h.strategy} of {'+'.join(h.on)}, joined with {'+'.join(h.other)}, is {word}" for h in rest
        )
    return found


def order_text(group: PinnedGroup, names: Mapping[str, str] | None = None) -> str:
    """An order as reports write it, for people; with other names of its relations if some are given.

    >>> order_text(PinnedGroup({"a": ("a",), "b": ("b",)}, (), (("a", "b"),)))
    '(a ⋈ b)'
    """
    made = dict(names) if names else {name: name for name in group.relations}
    for number, (left, right) in enumerate(group.order, 1):
        made[f"#{number}"] = f"({made[left]} ⋈ {made[right]})"
    return made[f"#{len(group.order)}"]


def _matched(group: PinnedGroup, other: PinnedGroup) -> dict[str, str] | None:
    return match(group, other) if len(group.relations) == len(other.relations) else None


def _sets(group: PinnedGroup, names: Mapping[str, str]) -> set[frozenset[str]]:
    """The relations below each join."""
    made = {name: frozenset([other]) for name, other in names.items()}
    for number, (left, right) in enumerate(group.order, 1):
        made[f"#{number}"] = made[left] | made[right]
    return set(made.values())


def _refined(group: PinnedGroup, labels: Mapping[str, str], shared: Collection[str]) -> dict[str, str]:
    """Labels of which those that several relations share also have the neighbours, and the columns in between."""
    near: dict[str, list[str]] = {name: [] for name in group.relations}
    for predicate in group.predicates:
        for name, columns in predicate.columns.items():
            others = sorted(digest(labels[o], *c) for o, c in predicate.columns.items() if o != name)
            near[name].append(digest(predicate.join, *columns, "|", *others))
    return {name: digest(label, *sorted(near[name])) if label in shared else label for name, label in labels.items()}
