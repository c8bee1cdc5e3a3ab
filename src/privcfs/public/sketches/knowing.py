"""A public context that knows a sketch: whatever guides reads the believed graph in the place of the snapshot."""

import hashlib
from pathlib import Path

from privcfs.errors import SketchError
from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.learning import learn_beliefs
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.context import PublicContext
from privcfs.public.sketches.listed_posterior import Keep, in_memory, posterior_of_listed
from privcfs.public.sketches.posterior import posterior_of
from privcfs.public.sketches.sketch import Sketch, read_sketch


def with_sketch(context: PublicContext, sketch: str | Path | Sketch) -> PublicContext:
    """The same public context together with a sketch of the hidden pairs.

    Guesses, plans, lists, confidences and advice then follow from both, and the sketch costs nothing more.

    Args:
        context: The context that the sketch was made for.
        sketch: The file that `privcfs sketch` wrote, or what `read_sketch` made of it.

    Returns:
        A context of its own, with a digest that names the sketch.

    Raises:
        SketchError: The sketch is missing or damaged, or was made for another context.
    """
    found = sketch if isinstance(sketch, Sketch) else read_sketch(sketch)
    return believing(context, found, believed(context, found))


def believed(base: PublicContext, sketch: Sketch, keep: Keep = in_memory) -> Posterior:
    """What is believed of every hidden pair; the sketch must be one of this context.

    Lists and tables of a sketch that lists pairs are handed to `keep`; by default they are kept in memory.
    """
    if base.sketch is not None:
        raise SketchError("the context knows a sketch already; give the context without any.")
    if sketch.context_digest != base.digest:
        raise SketchError(
            "the sketch was made for another public context: features, snapshot, model, names or assumptions have "
            "changed since. Restore them, or leave the sketch out and pay for a new one."
        )
    return posterior_given(base, learn_beliefs(base, sketch.worlds), sketch, keep)


def posterior_given(base: PublicContext, beliefs: Beliefs, sketch: Sketch, keep: Keep = in_memory) -> Posterior:
    """What follows from a sketch of either kind."""
    if sketch.listed is None:
        return posterior_of(base, beliefs, sketch)
    return posterior_of_listed(base, beliefs, sketch, keep)


def believing(base: PublicContext, sketch: Sketch, posterior: Posterior) -> PublicContext:
    """The context that knows a sketch and what follows from it."""
    digest = hashlib.sha256(f"{base.digest}\nsketch {sketch.name}".encode()).hexdigest()
    return base.knowing(sketch, posterior, digest)
