"""How much work a step of the fast evaluator is, in units of an allowance.

Zone: private
Claim: the units of a step are a function of sizes that are known before the step begins, and about its nanoseconds.
Why: they are the sum of what the step reads, writes, sorts and multiplies, with weights that are public constants.
Check: tests/private/test_allowance.py::test_a_unit_is_about_a_nanosecond
"""

# A fit, rounded by hand, to the processor time of 110 evaluations by one busy core of an EPYC server: every candidate
# rule on Cora and CiteSeer for nodes of 1 to 168 neighbours, and stars of 4 to 20,000 neighbours, from 0.4 to 1,700
# milliseconds each. Units over nanoseconds in these same evaluations: median 1.1, least 0.64, greatest 1.7.
STEP = 40_000  # One step, whatever its sizes.
READ = 40  # A neighbour that is read from its list and looked up among other nodes.
KEY = 150  # A key that is sorted.
ENTRIES_A_UNIT = 2  # Entries of tables that are written.
PRODUCTS_A_UNIT = 64  # Multiplications of matrix products.


def work(*, read: int = 0, entries: int = 0, keys: int = 0, products: int = 0) -> int:
    """Units of one step that reads, writes, sorts and multiplies so much."""
    return STEP + READ * read + KEY * keys + entries // ENTRIES_A_UNIT + products // PRODUCTS_A_UNIT
