"""How many rows: where counts come from, and the rows of every operator above.

Without this room the search would compare guesses: the cost of an order is a sum over the sizes of its joins.

* `model/`: what is known of a relation and a column; reading of predicates.
* `sources/`: where counts come from (file footers, catalog, samples, declared and proven keys), leaf by leaf.
* `store/`: what was counted once is kept, for these very files.
* `plans/`: rows of filters, joins, aggregates, any operator; selectivity of predicates.

It imports `plan`. Rows of a set of relations of a join group are `joins.cardinality`'s.
"""
