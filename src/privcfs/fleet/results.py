"""Answers of a job as Parquet, written as they come."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, final

from privcfs.errors import MissingDependency, SettingsError
from privcfs.fleet.parts import Answer
from privcfs.public.release import Release

COLUMNS = {  # and their types in Parquet; a confidence is missing where nothing is believed
    "target": "string",
    "epsilon": "double",  # rounded to a float; the certificate has the decimal
    "intervention": "string",
    "confidence": "double",
    "public_guess": "string",
    "public_guess_confidence": "double",
    "request_id": "string",
    "release": "string",
}
GROUP = 1024  # rows that are written at a time


@final
class ResultFile:
    """One row an answer, in the order of the targets; `release` is the certificate as `verify` reads it.

    Beside each answer and its confidence stands the guess that public data give for nothing, with its confidence.

    Used with `with`: the file is there, whole, when the block ends without an error; with one, or without an answer,
    it is as it was.
    """

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingDependency("Parquet files need pyarrow: pip install 'privcfs[parquet]'.") from None
        self._arrow: Any = pyarrow
        self._path, self._fresh = path, path.with_name(path.name + ".new")
        self._schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])
        self._rows: list[tuple[str | float | None, ...]] = []
        self.written = 0
        try:
            self._writer = pyarrow.parquet.ParquetWriter(self._fresh, self._schema)
        except OSError as error:
            raise self._refusal(error) from None

    def __enter__(self) -> "ResultFile":
        return self

    def add(self, answers: Sequence[Answer]) -> None:
        """Appends rows."""
        for answer in answers:
            release = Release.from_json(answer.release)
            released = float(release.epsilon), answer.intervention, release.confidence
            guess = answer.guess, answer.guess_confidence
            self._rows.append((answer.target, *released, *guess, release.request_id, answer.release))
        self.written += len(answers)
        if len(self._rows) >= GROUP:
            self._flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or not self.written:
            self._writer.close()
            self._fresh.unlink(missing_ok=True)
            return
        self._flush()
        self._writer.close()
        try:
            self._fresh.replace(self._path)
        except OSError as fault:
            raise self._refusal(fault) from None

    def _flush(self) -> None:
        columns = [list(one) for one in zip(*self._rows, strict=True)]
        try:
            if columns:
                self._writer.write_table(self._arrow.table(columns, schema=self._schema))
        except OSError as fault:
            raise self._refusal(fault) from None
        self._rows.clear()

    def _refusal(self, error: OSError) -> SettingsError:
        return SettingsError(f"{self._path} cannot be written: {error}; run the job again, it pays nothing twice.")
