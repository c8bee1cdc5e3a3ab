"""privcfs: the verbs of owner, analyst and person on the command line."""

import sys

from privcfs.cli.advising import advise
from privcfs.cli.batch import batch
from privcfs.cli.commands import app
from privcfs.cli.features import believe, features
from privcfs.cli.importing import import_
from privcfs.cli.output import complain
from privcfs.cli.serving import keys_app, serve
from privcfs.cli.sketching import sketch
from privcfs.cli.training import train
from privcfs.errors import PrivcfsError

__all__ = ["app", "main"]
app.command()(advise)
app.command()(batch)
app.command()(believe)
app.command()(features)
app.command("import")(import_)
app.command()(serve)
app.command()(sketch)
app.command()(train)
app.add_typer(keys_app, name="keys")


def main() -> None:
    """Runs one command; an expected error ends in one line and its own exit code."""
    try:
        app()
    except PrivcfsError as error:
        complain(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
