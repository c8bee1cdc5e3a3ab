"""What follows from a sketch, kept in a file beside it so that it is computed once.

Zone: owner
Claim: the file holds a function of public data; one of another sketch, or a damaged one, is computed anew.
Why: it names the sketch and the context, by digest, that it was computed for; nothing here is given an edge.
Check: tests/owner/test_kept_sketch.py::test_what_follows_from_a_sketch_is_computed_once
"""

import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from privcfs.owner.kept_beliefs import silent
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.context import PublicContext
from privcfs.public.sketches.knowing import believed, believing
from privcfs.public.sketches.sketch import read_sketch
from privcfs.tables.neighbours import Neighbours

FORMAT = "1"


def recall_or_believe(context: PublicContext, path: Path, progress: Callable[[str], None] = silent) -> PublicContext:
    """The context that knows the sketch at a path; what follows from it comes from the file beside it, or is written.

    A file that cannot be written is no error: the next process computes again.
    """
    sketch, beside = read_sketch(path), path.with_name(f"{path.name}.beliefs.npz")
    name = f"{FORMAT} {sketch.name} {context.digest}"
    posterior = _kept(beside, name)
    if posterior is None:
        progress("working out what follows from the sketch")
        posterior = believed(context, sketch)
        _keep(beside, name, posterior)
    return believing(context, sketch, posterior)


def _kept(path: Path, name: str) -> Posterior | None:
    """What a file holds for this sketch and context; None where it holds nothing for them."""
    with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), np.load(path) as kept:
        if str(kept["name"]) == name:
            listed = Neighbours(kept["listed_starts"], kept["listed"])
            return Posterior(Neighbours(kept["starts"], kept["others"]), listed, kept["chances"], kept["rest"])
    return None


def _keep(path: Path, name: str, posterior: Posterior) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.npz")
    with suppress(OSError):
        np.savez(
            fresh,
            name=np.array(name),
            starts=posterior.believed.starts,
            others=posterior.believed.others,
            listed_starts=posterior.listed.starts,
            listed=posterior.listed.others,
            chances=posterior.chances,
            rest=posterior.rest,
        )
        fresh.replace(path)
