"""Public names of nodes beside node numbers, as JSON shows them: {"3": "person-3"}."""

import re
from collections.abc import Mapping

NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")  # as a key of a JSON object, which is always text


def labels_to_dict(labels: Mapping[int, str]) -> dict[str, str]:
    """As JSON shows them, by ascending node number."""
    return {str(node): labels[node] for node in sorted(labels)}


def labels_from_dict(fields: object) -> dict[int, str]:
    """The inverse of `labels_to_dict`; raises ValueError for anything but printable names of node numbers."""
    if not isinstance(fields, dict):
        raise ValueError("labels must be an object")
    for number, name in fields.items():
        if not NUMBER.fullmatch(number) or not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError("labels must give node numbers printable names")
    return {int(number): name for number, name in fields.items()}
