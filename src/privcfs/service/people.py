"""Lists of people: who stands for which node. Keys are made from them in bulk."""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, final

from privcfs.errors import InputError, SettingsError, UnknownNode
from privcfs.public.context import PublicContext
from privcfs.service.database import OWNER_ONLY
from privcfs.service.keys import Key, Wish

COLUMNS = ("node", "holder", "key", "ends", "secret")


def read_rows(path: Path, header: Sequence[str], least: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file with their line numbers, without empty ones and without a header, if there is one.

    Args:
        path: The file.
        header: The names of its columns. A first row that consists of some of the first of them is a header.
        least: How many columns a row must have.

    Yields:
        The number of a row's line, and its cells without surrounding spaces.

    Raises:
        SettingsError: The file cannot be read, or a row has too many columns or too few.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                cells = [cell.strip() for cell in row]
                if not any(cells) or (reader.line_num == 1 and cells == list(header[: len(cells)])):
                    continue
                if not least <= len(cells) <= len(header):
                    raise SettingsError(f"{path}, line {reader.line_num}: write {' or '.join(_forms(header, least))}.")
                yield reader.line_num, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SettingsError(f"{path} cannot be read: {reason}; give a CSV file in UTF-8.") from None


def read_wishes(path: Path, context: PublicContext) -> list[Wish]:
    """The keys that a file asks for: a row for each, `node` or `node,holder`.

    Args:
        path: The file.
        context: The public context, which has the nodes.

    Returns:
        A wish for each row; without a holder, the node's name is the holder's.

    Raises:
        SettingsError: The file cannot be read, is empty, names a node that does not exist, or names a pair twice.
    """
    wishes: dict[Wish, int] = {}
    for line, cells in read_rows(path, ("node", "holder"), 1):
        try:
            name = context.label(context.node(cells[0]))
        except UnknownNode as error:
            raise SettingsError(f"{path}, line {line}: {error} No key was made.") from None
        wish = Wish(cells[1] if len(cells) > 1 and cells[1] else name, (name,))
        if wish in wishes:
            raise SettingsError(f"{path}, line {line}: line {wishes[wish]} says the same. No key was made.")
        wishes[wish] = line
    if not wishes:
        raise SettingsError(f"{path} names nobody; write a row for each key: node, or node,holder.")
    return list(wishes)


@final
class SecretFile:
    """Writes keys with their secrets into an open file."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._writer = file, csv.writer(file)
        self._writer.writerow(COLUMNS)

    def add(self, key: Key, secret: str) -> None:
        """Writes one key."""
        self._writer.writerow([" ".join(sorted(key.targets or ())), key.holder, key.name, key.ends, secret])

    def sync(self) -> None:
        """What was written is on disk when this returns."""
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def secret_file(path: Path) -> Iterator[SecretFile]:
    """A new file for keys with their secrets, readable by its owner alone. Where something fails, it is taken away.

    Args:
        path: Where; a file that exists is never overwritten.

    Yields:
        What writes to it.

    Raises:
        InputError: The file exists already.
        SettingsError: It cannot be written.
    """
    try:
        number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY)
    except FileExistsError:
        raise InputError(f"{path} exists and may hold keys; name another file. No key was made.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}. No key was made.") from None
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            yield SecretFile(file)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _forms(header: Sequence[str], least: int) -> list[str]:
    return [",".join(header[:number]) for number in range(least, len(header) + 1)]
