"""Starts privcfs-lab, or says which packages it needs."""

import sys

from privcfs.cli.output import complain
from privcfs.errors import MissingDependency


def main() -> None:
    """Runs one command of the laboratory."""
    try:
        from privcfs_lab.cli.commands import main as run
    except ModuleNotFoundError as error:
        missing = MissingDependency(f"the laboratory needs {error.name}: pip install 'privcfs[lab]'.")
        complain(missing, as_json=False)
        sys.exit(missing.exit_code)
    run()
