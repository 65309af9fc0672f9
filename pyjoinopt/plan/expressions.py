"""Expressions of the mirror: one small class, because most of Catalyst's are opaque to a join optimizer.

An optimizer of joins reads few kinds of expression (And, EqualTo, IsNotNull, attributes, literals) and must carry
hundreds of others unharmed. So every expression is a node with a Catalyst class name (`kind`), children and the
properties that decide whether it may move: which attributes it reads, whether it is deterministic, whether it hides
a Python UDF, a subquery or an outer reference.

Where it came from is kept beside it. `number` names the JVM expression it *is*; `origin` the JVM expression whose
class and parameters it shares, though its children differ. What has neither was made here, by one of the
constructors below, and is built by name. That is why a type or function never seen before survives the journey.

Attribute sets are plain ints: bit *b* stands for attribute number *b* of the plan, so that a union is one `|`.

Nodes are never changed after they are made; frozen dataclasses would enforce it, at three times the price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyjoinopt.plan import limits

if TYPE_CHECKING:
    from pyjoinopt.plan.nodes import LogicalPlan

# Properties that the exporter reports; see jvm_shim's ExpressionExporter.
DETERMINISTIC = 1
NULL_INTOLERANT = 2
FOLDABLE = 4
THROWABLE = 8
PYTHON_UDF = 16
UNEVALUABLE = 32
OUTER_REFERENCE = 64
SUBQUERY = 128
AGGREGATE_OR_WINDOW = 256
ANSI = 512
NULLABLE = 1024
CORRELATED = 2048
TRYING = 4096
CONSTANT = 8192  # evaluated, see `constant_values`
CURRENT = 16384
REPLACED = 32768  # a function that is replaced by its only child

#: Kinds whose meaning this package knows; they compare by structure wherever they came from.
STRUCTURAL = frozenset(
    {"And", "Or", "Not", "EqualTo", "EqualNullSafe", "IsNull", "IsNotNull"}
    | {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
)
#: `=` and `<=>`.
EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})
#: Comparison -> the same one with its operands exchanged.
MIRRORED = {
    "GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan", "LessThanOrEqual": "GreaterThanOrEqual",
}  # fmt: skip
#: Comparison -> what holds where it is false.
NEGATED = {
    "GreaterThan": "LessThanOrEqual", "GreaterThanOrEqual": "LessThan",
    "LessThan": "GreaterThanOrEqual", "LessThanOrEqual": "GreaterThan",
}  # fmt: skip
_COMMUTATIVE = frozenset({"And", "Or", "EqualTo", "EqualNullSafe"})


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of some relation, the same one wherever it is used (Catalyst's `ExprId`)."""

    bit: int
    id: int
    name: str
    type: str = "int"
    nullable: bool = True

    @property
    def mask(self) -> int:
        """The one-element attribute set."""
        return 1 << self.bit

    def __repr__(self) -> str:
        return f"{self.name}#{self.id}"


class Expression:
    """One expression. Make it with the constructors of this module, or by decoding an export."""

    __slots__ = (
        "kind", "children", "type", "flags", "contains", "attribute", "value", "text", "plan", "info",
        "number", "origin", "sem", "references", "_key", "inlined", "fallible",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        children: tuple[Expression, ...] = (),
        type: str = "boolean",
        flags: int = DETERMINISTIC,
        attribute: Attribute | None = None,
        value: Any = None,
        text: str = "",
        plan: LogicalPlan | None = None,
        info: dict[str, Any] | None = None,
        number: int | None = None,
        origin: int | None = None,
        sem: int | None = None,
    ) -> None:
        self.kind = kind
        self.children = children
        self.type = type
        self.flags = flags
        self.attribute = attribute
        self.value = value
        self.text = text
        self.plan = plan
        self.info = info or {}
        self.number = number
        self.origin = origin
        self.sem = sem
        contains: int = flags
        references: int = 0
        for child in children:
            contains |= child.contains
            references |= child.references
        if kind == "AttributeReference" and attribute is not None:
            references = attribute.mask
        elif flags & SUBQUERY:
            references |= self.info.get("outer_references", 0)
        self.contains: int = contains
        self.references: int = references
        self._key: Any = None
        # Computed once, on first use, by `common_expressions` and by `fallibility`.
        self.inlined: Expression | None = None
        self.fallible: bool | None = None

    # -- questions ---------------------------------------------------------------------------------------------

    @property
    def deterministic(self) -> bool:
        """Catalyst's `deterministic`: the same answer for the same row, whenever and wherever evaluated."""
        return bool(self.flags & DETERMINISTIC)

    @property
    def key(self) -> Any:
        """A hashable value, equal for two expressions that mean the same (Catalyst's `canonicalized`).

        Conservative: two equal expressions may have different keys, different ones never have equal keys.
        """
        if self._key is None:
            for e in walk(self):
                if e._key is None:
                    e._key = e._own_key()
        return self._key[1]

    def _own_key(self) -> tuple[int, Any]:
        depth = 1 + max((c._key[0] for c in self.children), default=0)
        if depth > limits.KEY_DEPTH or not self.deterministic:
            return depth, id(self)
        if self.kind == "AttributeReference" and self.attribute is not None:
            return depth, ("attribute", self.attribute.bit)
        if self.number is not None and self.sem is not None and self.kind not in STRUCTURAL:
            return depth, ("sem", self.sem)
        keys = tuple(c._key[1] for c in self.children)
        own: Any = self.kind if self.kind in STRUCTURAL else (self.kind, self.origin, self.text)
        return depth, (own, frozenset(keys) if self.kind in _COMMUTATIVE else keys)

    def same(self, other: Expression) -> bool:
        """True if both certainly mean the same."""
        return self is other or self.key == other.key

    # -- copies ------------------------------------------------------------------------------------------------

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The same expression over other children (Catalyst's `withNewChildren`)."""
        if children == self.children:  # by identity: expressions have no other equality
            return self
        flags = self.flags & ~(CONSTANT | CURRENT)
        if not all(c.deterministic for c in children):
            flags &= ~DETERMINISTIC
        return Expression(
            self.kind, children, self.type, flags, self.attribute, self.value, self.text, self.plan,
            self.info, None, self.origin, self.sem,
        )  # fmt: skip

    def with_plan(self, plan: LogicalPlan) -> Expression:
        """The same subquery expression over another plan."""
        if plan is self.plan:
            return self
        return Expression(
            self.kind, self.children, self.type, self.flags, self.attribute, self.value, self.text, plan,
            self.info, None, self.origin, self.sem,
        )  # fmt: skip

    def __repr__(self) -> str:
        return describe(self)


# -- constructors ----------------------------------------------------------------------------------------------


def reference(attribute: Attribute) -> Expression:
    """A use of a column."""
    return Expression("AttributeReference", type=attribute.type, attribute=attribute)


def call(kind: str, *children: Expression) -> Expression:
    """A predicate of a kind in `STRUCTURAL` over children.

    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> call("EqualTo", reference(a), reference(b))
    (a = b)
    """
    flags = DETERMINISTIC if all(c.deterministic for c in children) else 0
    if kind not in ("And", "Or", "EqualNullSafe", "IsNull", "IsNotNull"):
        flags |= NULL_INTOLERANT
    return Expression(kind, children, flags=flags)


def literal(value: Any, type: str = "boolean") -> Expression:
    """A constant. Only booleans can be sent to the JVM; others serve tests and estimates."""
    return Expression("Literal", type=type, flags=DETERMINISTIC | FOLDABLE, value=value, text=str(value).lower())


TRUE = literal(True)


def conjunction(predicates: Iterable[Expression]) -> Expression | None:
    """AND of the predicates, left-deep as Catalyst's `reduceLeftOption(And)`; None for none."""
    result: Expression | None = None
    for predicate in predicates:
        result = predicate if result is None else call("And", result, predicate)
    return result


def conjuncts(predicate: Expression | None) -> list[Expression]:
    """The operands of the AND chain, left to right (Catalyst's `splitConjunctivePredicates`)."""
    return operands(predicate, "And") if predicate is not None else []


def operands(predicate: Expression, kind: str) -> list[Expression]:
    """The leaves of a chain of one associative kind, left to right."""
    found, stack = [], [predicate]
    while stack:
        e = stack.pop()
        if e.kind == kind:
            stack.extend(reversed(e.children))
        else:
            found.append(e)
    return found


# -- walks -----------------------------------------------------------------------------------------------------


def walk(root: Expression) -> Iterator[Expression]:
    """Every sub-expression, children before parents, without recursion."""
    stack: list[Expression | None] = [root]  # None: the one below it has had its children
    while stack:
        e = stack.pop()
        if e is None:
            e = stack.pop()
            assert e is not None
            yield e
        elif e.children:
            stack += (e, None, *reversed(e.children))
        else:
            yield e


def rewrite(root: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Bottom-up rewrite; `change` sees each expression after its children were rewritten."""
    results: list[Expression] = []
    for e in walk(root):
        n = len(e.children)
        if n:
            children = tuple(results[-n:])
            del results[-n:]
            e = e.with_children(children)
        results.append(change(e))
    return results[0]


def substitute(root: Expression, columns: dict[int, Expression]) -> Expression:
    """Replace attributes (by bit) with expressions: what a predicate becomes below a projection."""
    if not any(root.references >> bit & 1 for bit in columns):
        return root

    def swap(e: Expression) -> Expression:
        if e.kind == "AttributeReference" and e.attribute is not None:
            return columns.get(e.attribute.bit, e)
        return e

    return rewrite(root, swap)


_SYMBOLS = {
    "And": "AND", "Or": "OR", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=",
    "GreaterThan": ">", "GreaterThanOrEqual": ">=", "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/",
}  # fmt: skip


def describe(root: Expression, limit: int = 200) -> str:
    """Short SQL-like text for reports."""
    texts: list[str] = []
    for e in walk(root):
        n = len(e.children)
        args = texts[len(texts) - n :]
        del texts[len(texts) - n :]
        if e.kind == "AttributeReference" and e.attribute is not None:
            text = e.attribute.name
        elif e.kind == "Literal":
            text = e.text
        elif e.kind in _SYMBOLS and n == 2:
            text = f"({args[0]} {_SYMBOLS[e.kind]} {args[1]})"
        elif e.kind == "Alias" and e.attribute is not None:
            text = f"{args[0]} AS {e.attribute.name}"
        elif e.kind in ("IsNull", "IsNotNull"):
            text = f"({args[0]} IS {'NOT ' if e.kind == 'IsNotNull' else ''}NULL)"
        elif e.kind == "Not":
            text = f"(NOT {args[0]})"
        elif e.kind == "Cast":
            text = f"cast({args[0]} as {e.type})"
        else:
            text = f"{(e.info.get('name') or e.kind).lower()}({', '.join(args)})"
        texts.append(text if len(text) <= limit else text[: limit - 1] + "…")
    return texts[0]
