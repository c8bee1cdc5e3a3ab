"""Caches of values that are computed from a public context; they are freed together with the context."""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, final
from weakref import ref

from privcfs.public.context import PublicContext

P = ParamSpec("P")
T = TypeVar("T")


@final
class PerContext(Generic[P, T]):
    """A function of a context and further hashable arguments whose latest results are stored on the context.

    Each context has one `functools.lru_cache` for each such function, so a cache is as thread-safe as `lru_cache` is:
    two threads may compute the same result at once, and both get a correct one. The cache refers to its context weakly,
    so that a context without other references can be freed.
    """

    def __init__(self, function: Callable[Concatenate[PublicContext, P], T], maxsize: int) -> None:
        """Wraps `function`; each context stores its results for the last `maxsize` different arguments."""
        update_wrapper(self, function)
        self.__wrapped__ = function
        self._maxsize = maxsize

    def __call__(self, context: PublicContext, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the stored result for these arguments, or computes and stores it."""
        return cast(T, self._cache(context)(*args, **kwargs))

    def cache_clear(self, context: PublicContext) -> None:
        """Discards all results of this function that are stored on `context`."""
        context.caches.pop(self.__wrapped__, None)

    def _cache(self, context: PublicContext) -> Callable[..., Any]:
        """Returns the cache of this function on `context`, and creates it at the first call."""
        found = context.caches.get(self.__wrapped__)
        return found or context.caches.setdefault(self.__wrapped__, self._new_cache(context))

    def _new_cache(self, context: PublicContext) -> Callable[..., Any]:
        """Creates an empty cache that does not keep `context` alive."""
        reference, function = ref(context), self.__wrapped__

        def compute(*args: P.args, **kwargs: P.kwargs) -> T:
            alive = reference()
            assert alive is not None, "the caller holds the context"
            return function(alive, *args, **kwargs)

        return lru_cache(self._maxsize)(compute)


def per_context(maxsize: int) -> Callable[[Callable[Concatenate[PublicContext, P], T]], PerContext[P, T]]:
    """Decorates a function whose first parameter is a public context: its results live as long as the context does.

    A context stores the results for the last `maxsize` different further arguments.
    """
    return lambda function: PerContext(function, maxsize)
