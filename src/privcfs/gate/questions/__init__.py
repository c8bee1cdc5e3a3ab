"""The questions that a vault answers, one file each.

Zone: gate
Claim: every question satisfies the contract of question.py.
Why: a vault runs all of them through one function, which pays before it evaluates.
Check: tests/gate/test_vault.py::test_what_is_refused_or_finished_is_neither_prepared_nor_evaluated
"""
