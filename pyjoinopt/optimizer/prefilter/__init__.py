"""Rows that will find no partner go before they are grouped or shuffled (sideways information passing).

* `regions`: joins of which every row of the result fulfils the same equalities, and what could filter in them;
* `sources`: plans whose keys are worth reading twice, and the second reading of them;
* `places`: how far down in a plan a filter by a column may go;
* `prefilter`: which filters pay.
"""
