"""What `pyjoinopt.analyze` gathered, remembered for these very files: in this process, and in the store if any.

It is stored beside the statistics of footers, not in their place, so that a setting that uses footers alone
keeps doing so.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable

from pyjoinopt.estimation.sources.json import column_from, facts_of
from pyjoinopt.estimation.sources.registry import Files, Known
from pyjoinopt.estimation.store.store import Store

#: Kind of the store's blobs.
BLOB = "analysis"
_MOST = 1000
_here: OrderedDict[tuple[str, str], Known] = OrderedDict()


def remember(files: Files, known: Known, store: Store | None) -> None:
    """Keep what was gathered; columns that were gathered earlier are kept."""
    before = recall(files, store)
    columns = {**(before.columns if before else {}), **known.columns}
    known = Known(known.rows, known.bytes, columns, known.exact, known.source, known.gathered, known.note)
    _here[files.id, files.schema] = known
    _here.move_to_end((files.id, files.schema))
    while len(_here) > _MOST:
        _here.popitem(last=False)
    if store is not None:
        store.put_blob(files, BLOB, to_bytes(known))


def recall(files: Files, store: Store | None) -> Known | None:
    """What is remembered of these files."""
    key = files.id, files.schema
    if key not in _here and store is not None:
        content = store.blob(files, BLOB)
        known = from_bytes(content) if content is not None else None
        if known is not None:
            _here[key] = known
    return _here.get(key)


def forget(files: Iterable[Files] | None = None) -> None:
    """Forget what this process remembers of some files, or everything; the store is cleared by itself."""
    if files is None:
        _here.clear()
    for one in files or ():
        for key in [key for key in _here if key[0] == one.id]:
            del _here[key]


def to_bytes(known: Known) -> bytes:
    """What the store keeps.

    >>> from pyjoinopt.estimation.sources.registry import Column
    >>> from_bytes(to_bytes(Known(3.0, columns={"a": Column(ndv=2)}, exact=True))).columns
    {'a': Column(ndv=2, min=None, max=None, nulls=None, avg_len=None, details={})}
    """
    columns = {name: facts_of(column) for name, column in known.columns.items()}
    return json.dumps([known.rows, known.bytes, known.exact, known.source, known.gathered, columns]).encode()


def from_bytes(content: bytes) -> Known | None:
    """The same the other way; None for what cannot be understood."""
    try:
        rows, size, exact, source, gathered, columns = json.loads(content)
        facts = {str(name): column_from(one) for name, one in columns.items()}
        return Known(float(rows), size, facts, bool(exact), str(source), gathered)
    except (ValueError, TypeError, AttributeError):
        return None
