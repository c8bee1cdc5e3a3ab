"""The page of a release: what the picture draws is what its caption says, and nodes have their names."""

import re
from html import escape
from pathlib import Path

import pytest

from privcfs import Intervention, PublicContext, Release, Vault
from privcfs.cli.page import Story, page
from tests.worlds import named_world

STORY = Story("title", "lead", "warning", [], [], [], [], [])
LONG = "Universitätsklinikum <Nord>"


def shown(tmp_path: Path, intervention: Intervention) -> str:
    """The page of a release that names these pairs, where node 5 has a long name."""
    world = named_world(4)
    plain = world.context
    names = [LONG if node == 5 else f"person-{node}" for node in range(plain.number_of_nodes)]
    context = PublicContext(plain.features, plain.snapshot.pairs, plain.model, node_ids=names)
    vault = Vault(world.graph, context, ledger=f"sqlite:///{tmp_path / 'budget.db'}", limit="10")
    drawn = vault.release(3, "1")
    fields = {name: getattr(drawn, name) for name in ("epsilon", "mechanism", "guarantee", "context_digest")}
    labels = context.labels({3, *intervention.nodes})
    release = Release(3, intervention, **fields, assumptions=(), analyst="ann", request_id="r", labels=labels)
    return page(STORY, release, context, vault.balance(), 0.7)


@pytest.mark.parametrize(
    ("intervention", "said", "unsaid"),
    [
        (Intervention(delete=((3, 5),)), "Dashed, with a cross: pairs that the release deletes.", "Dotted"),
        (Intervention(add=((3, 5),)), "Dotted, with a plus: pairs that the release adds.", "Dashed"),
        (Intervention(mask=(1,)), "The release names no pair.", "Dashed"),
    ],
    ids=["deletion", "addition", "mask"],
)
def test_the_caption_names_what_is_drawn(tmp_path: Path, intervention: Intervention, said: str, unsaid: str) -> None:
    found = shown(tmp_path, intervention)
    assert said in found
    assert unsaid not in found


def test_names_are_whole_or_end_in_an_ellipsis(tmp_path: Path) -> None:
    found = shown(tmp_path, Intervention(add=((3, 5),)))
    drawn = re.findall(r"<text [^>]*>([^<]*)</text>", found)
    assert "person-3" in drawn
    assert "Universitätskli…" in drawn
    assert f"<title>{escape(LONG)}</title>" in found
    assert f"add person-3 - {escape(LONG)}" in found
    assert escape('"labels": {') in found, "the certificate has the names"


def test_only_public_pairs_are_drawn_as_public(tmp_path: Path) -> None:
    """A deletion between two other nodes draws that pair, and no pair between them and the target."""
    context = named_world(4).context
    public = set(context.snapshot.neighbours(3))
    strangers = [node for node in range(8) if node not in {*public, 3}]
    found = shown(tmp_path, Intervention(delete=((strangers[0], 5),)) if strangers else Intervention())
    assert found.count('stroke="#8a94a0"') == len(public)
