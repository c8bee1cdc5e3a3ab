"""What a vault learned from public data, kept in a file beside the vault file so that it is learned once.

Zone: owner
Claim: the file holds a function of public data; a file of another context, or a damaged one, is learned anew.
Why: it names the digest of the public context and the settings that it was learned for; nothing here is given an edge.
Check: tests/owner/test_kept_beliefs.py::test_beliefs_are_learned_once_and_kept
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from privcfs.gate.guidance import Rehearsal
from privcfs.gate.learning import learn
from privcfs.gate.method import Method
from privcfs.public.beliefs.learned import learned_from
from privcfs.public.context import PublicContext

NAME = "beliefs.json"


def silent(_: str) -> None:
    """Shows no progress."""


def recall_or_learn(
    path: Path, context: PublicContext, method: Method, progress: Callable[[str], None] = silent
) -> None:
    """Gives a context what was learned for it: from the file, or now, and then the file is written.

    A file that cannot be written is no error: the next process learns again.
    """
    if not isinstance(method.guide, Rehearsal) or method.guide.worlds in context.learned:
        return
    worlds, found = method.guide.worlds, None
    with suppress(OSError, UnicodeDecodeError):
        found = learned_from(path.read_text(encoding="utf-8"), context, worlds)
    if found is None:
        found = learn(context, worlds, progress)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            fresh.write_text(found.to_json(context, worlds), encoding="utf-8")
            fresh.replace(path)
    context.learned[worlds] = found
