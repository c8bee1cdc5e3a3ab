"""What is computed from a public context is computed once, and is freed together with the context."""

import gc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from weakref import ref

import numpy as np

from privcfs.embedded import load_dataset
from privcfs.gate.method import GUIDED
from privcfs.gate.questions.release import lay_out
from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits
from privcfs.public.per_context import per_context
from tests.worlds import random_world


def test_a_result_is_computed_once_for_each_context_and_argument() -> None:
    calls = []

    @per_context(maxsize=2)
    def add(context: PublicContext, number: int) -> int:
        calls.append((context.seed, number))
        return context.number_of_nodes + number

    one, other = random_world(1).context, random_world(2).context
    assert [add(one, 1), add(one, 1), add(other, 1), add(one, 2)] == [
        one.number_of_nodes + extra for extra in (1, 1, 1, 2)
    ]
    assert calls == [(one.seed, 1), (other.seed, 1), (one.seed, 2)]
    add(one, 3)
    add(one, 1)
    assert len(calls) == 5, "only the last two arguments are stored"
    add.cache_clear(one)
    add(one, 1)
    add(other, 1)
    assert len(calls) == 6, "the other context still has its result"


def test_a_context_is_freed_with_everything_that_was_computed_from_it() -> None:
    context = load_dataset("cora").context()
    lay_out(GUIDED, context, 3, Fraction(1))
    assert context.caches
    freed = ref(context)
    del context
    gc.collect()
    assert freed() is None


def test_a_cache_that_held_the_context_would_be_found_out() -> None:
    held = []

    @per_context(maxsize=1)
    def leak(context: PublicContext) -> int:
        held.append(context)
        return 0

    context = random_world(1).context
    leak(context)
    freed = ref(context)
    del context
    gc.collect()
    assert freed() is not None


def test_threads_get_the_same_result() -> None:
    context = load_dataset("cora").context()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(snapshot_logits, [context] * 16, [np.arange(50)] * 16))
    assert all((one == found[0]).all() for one in found)
