"""Installs the Debian packages that some tests need, where that is possible."""

import os
import shutil
import subprocess

NEEDED = {
    "chromium": "the web console in a browser",
    "strace": "the ledger under loss of power",
    "hey": "the service under load",
}


def main() -> None:
    """Says what it cannot do; the tests that need a package are then skipped, with a message."""
    missing = [name for name in NEEDED if not shutil.which(name)]
    if not missing:
        return
    if os.getuid() == 0 and shutil.which("apt-get"):
        for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL, check=False)
    for name in missing:
        if not shutil.which(name):
            print(f"{name} is missing: tests of {NEEDED[name]} will be skipped. As root: apt-get install {name}")


if __name__ == "__main__":
    main()
