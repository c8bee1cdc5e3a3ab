"""Where in a schema a mistake is: errors name the file, the feature or rule, and what to do."""

from dataclasses import dataclass
from typing import NoReturn, final

from privcfs.errors import ContextError
from privcfs.tables.parsing import shown

LONGEST = 80  # letters of a name, a unit or an option
MARKUP = set("<>&\"'`\\")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A schema, and a part of it such as: feature 'Age'."""

    source: str
    part: str = ""

    def feature(self, name: str) -> "Place":
        """The place of one feature."""
        return Place(self.source, f"feature {shown(name)}")

    def refuse(self, what: str, advice: str) -> NoReturn:
        """Raises an error that names the place."""
        where = f"{self.source}, {self.part}" if self.part else self.source
        raise ContextError(f"{where}: {what}; {advice}.")

    def checked_name(self, text: object, what: str) -> str:
        """Plain text that may stand in a certificate, on a page and at a terminal."""
        if not isinstance(text, str) or not text or text != text.strip():
            self.refuse(f"{what} is {shown(str(text))}", "write plain text without blanks at its ends")
        if not text.isprintable() or MARKUP & set(text):
            self.refuse(
                f"{what} {shown(text)} holds markup or a control character", "use letters, digits, blanks, - and _"
            )
        if len(text) > LONGEST:
            self.refuse(f"{what} {shown(text)} has {len(text)} letters", f"use at most {LONGEST}")
        return text
