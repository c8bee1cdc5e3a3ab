"""Where a trial's page goes."""

from pathlib import Path


def put(text: str, where: str) -> None:
    """Into a file, or onto the screen for -."""
    if where == "-":
        print(text)
    else:
        Path(where).write_text(text)
