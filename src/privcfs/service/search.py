"""Search among the public names of nodes: names that begin with a text first, then names that contain it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple, final

from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context

MOST = 20  # names that one search finds
# Between names, in one long text that is searched at once. A text that is searched for never contains it.
SEPARATOR = "\n"


@final
class Found(NamedTuple):
    """The names that were found, and whether there are more."""

    names: list[str]
    more: bool


@final
class NamesInOrder:
    """Names sorted once without regard to case, so that each search takes milliseconds among a million of them."""

    def __init__(self, names: Iterable[str]) -> None:
        pairs = sorted((name.casefold(), name) for name in names)
        self._names = [name for _, name in pairs]
        self._folded = [folded for folded, _ in pairs]
        self._text = SEPARATOR.join(self._folded)
        self._starts = list(accumulate((len(folded) + 1 for folded in self._folded), initial=0))

    def search(self, text: str, most: int = MOST) -> Found:
        """Names that begin with a text, and then those that contain it elsewhere, each in alphabetical order."""
        sought = text.casefold()
        if not sought or SEPARATOR in sought:
            return Found([], False)
        places = list(islice(self._places(sought), most + 1))
        return Found([self._names[place] for place in places[:most]], len(places) > most)

    def _places(self, sought: str) -> Iterator[int]:
        first = bisect_left(self._folded, sought)
        last = first
        while last < len(self._folded) and self._folded[last].startswith(sought):
            yield last
            last += 1
        at = self._text.find(sought)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            if not first <= place < last:
                yield place
            at = self._text.find(sought, self._starts[place + 1])


def search_numbers(text: str, count: int, most: int = MOST) -> Found:
    """The same among nodes that have no names: numbers below `count`, by their digits."""
    if not text.isascii() or not text.isdigit():
        return Found([], False)
    found: dict[int, None] = {}  # in order, each once; never more than is asked for
    for number in _numbers(text, count):
        found[number] = None
        if len(found) > most:
            break
    return Found([str(number) for number in islice(found, most)], len(found) > most)


def search(context: PublicContext, text: str, among: Sequence[str] | None = None) -> Found:
    """Nodes whose public name, or number where nodes have none, begins with a text or contains it.

    Args:
        context: The public context.
        text: What is sought, in any case.
        among: The names that may be found; by default all.

    Returns:
        At most MOST names.
    """
    if among is not None:
        return NamesInOrder(among).search(text)
    return (
        search_numbers(text, context.number_of_nodes) if context.node_ids is None else _names_of(context).search(text)
    )


@per_context(maxsize=1)
def _names_of(context: PublicContext) -> NamesInOrder:
    return NamesInOrder(context.node_ids or ())


def _numbers(digits: str, count: int) -> Iterator[int]:
    """Numbers below `count` that begin with these digits, shortest first, and then those that contain them."""
    longest = len(str(count - 1))
    for more in range(longest - len(digits) + 1):
        if digits[0] == "0" and (more or len(digits) > 1):
            break  # No number begins with 0 but 0 itself.
        first = int(digits) * 10**more
        yield from range(first, min(first + 10**more, count))
    for length in range(len(digits) + 1, longest + 1):
        for before in range(1, length - len(digits) + 1):
            yield from _containing(int(digits), len(digits), before, length - len(digits) - before, count)


def _containing(sought: int, width: int, before: int, after: int, count: int) -> Iterator[int]:
    """Numbers with so many digits before and after the ones that are sought."""
    for head in range(10 ** (before - 1), 10**before):
        first = (head * 10**width + sought) * 10**after
        if first >= count:
            return
        yield from range(first, min(first + 10**after, count))
