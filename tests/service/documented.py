"""The endpoints that docs/service.md names, and the key that each needs: tests ask them all, and keep no list."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/service.md"
ROW = re.compile(r"^\| `([A-Z]+) (/[^`]*)` \|.*\| (anyone's|analyst's|person's|owner's|none) \|$", re.MULTILINE)
Endpoint = tuple[str, str]  # method, and path as a reader sees it
ENDPOINTS: dict[Endpoint, str] = {
    (method, path): key for method, path, key in ROW.findall(PAGE.read_text(encoding="utf-8"))
}
# The roles whose keys open an endpoint.
OPENED_BY = {
    "anyone's": {"owner", "analyst", "person"},
    "analyst's": {"owner", "analyst"},
    "owner's": {"owner"},
    "person's": {"person"},
    "none": {"owner", "analyst", "person"},
}


def address(path: str) -> str:
    """A path with something in the place of each parameter."""
    return re.sub(r"\{\w+\}", "person-1", path)
