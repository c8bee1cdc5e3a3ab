"""Installs Debian's chromium for the tests of the web console, where that is possible."""

import os
import shutil
import subprocess


def main() -> None:
    """Says what it cannot do; the tests that need a browser are then skipped, with a message."""
    if shutil.which("chromium"):
        return
    if os.getuid() != 0 or not shutil.which("apt-get"):
        print("chromium is missing: tests of the web console will be skipped. As root: apt-get install chromium")
        return
    for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "chromium"]):
        if subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL).returncode:
            print("chromium could not be installed: tests of the web console will be skipped.")
            return


if __name__ == "__main__":
    main()
