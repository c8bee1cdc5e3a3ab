"""Advice where people know some of their own edges only: the others count as other people's edges."""

from pathlib import Path

import numpy as np
import pytest

from privcfs import PrivateGraph, Vault
from privcfs.errors import GraphError, SettingsError
from privcfs.gate import vault as vault_module
from privcfs.gate.accounting import Limit
from privcfs.gate.certificates import verify_advice
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.questions.advice import AdviceQuestion
from privcfs.gate.vault import Vault as VaultClass
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Advice
from privcfs.public.context import PublicContext
from tests.cli.test_advising import owner as owner  # a fixture
from tests.gate.test_paid_advice import METHOD, hidden_model
from tests.shell import Shell
from tests.worlds import Pairs, private, random_world

TARGET, NODES = 2, 8


def vault_of(pairs: Pairs, context: PublicContext, known: bool | Pairs, **settings: object) -> Vault:
    return Vault(
        private(pairs, NODES),
        context,
        ledger=MemoryLedger(Limit.of("50")),
        method=METHOD,
        people_know_their_edges=known if isinstance(known, bool) else private(known, NODES),
        **settings,  # type: ignore[arg-type]
    )


def two_relations(seed: int) -> tuple[Pairs, list[Pairs]]:
    """Pairs that people know, and graphs that hold these together with different others, at the target too."""
    rng = np.random.default_rng(seed)
    known = random_world(seed).pairs[::2]
    others = [random_world(int(number)).pairs[: int(rng.integers(1, 9))] for number in rng.integers(10**6, size=6)]
    return known, [np.unique(np.concatenate([known, more]), axis=0) for more in (*others, known[:0])]


def test_advice_is_the_same_whatever_edges_there_are_that_she_does_not_know() -> None:
    changed = 0
    for seed in range(4):
        context = random_world(seed).context
        known, graphs = two_relations(seed)
        told = {vault_of(pairs, context, known).advise(TARGET).to_json() for pairs in graphs}
        assert len(told) == 1
        changed += len({vault_of(pairs, context, True).advise(TARGET).to_json() for pairs in graphs}) > 1
    assert changed, "her other edges would change it"


def test_a_vault_that_tells_her_of_all_her_edges_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_module, "known_to_people", lambda _known, graph, _context: graph)
    with pytest.raises(AssertionError):
        test_advice_is_the_same_whatever_edges_there_are_that_she_does_not_know()


def scores_with_a_secret_model(monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, ...]]:
    """The scores of advice whose price is for the model alone, on graphs that differ where she does not know them."""
    found: set[tuple[int, ...]] = set()
    honest = AdviceQuestion.score

    def watched(question: AdviceQuestion, reader: object) -> Scores:
        scores = honest(question, reader)  # type: ignore[arg-type]
        found.add(tuple(scores.unseal().tolist()))
        return scores

    monkeypatch.setattr(AdviceQuestion, "score", watched)
    _, context, (secrets, *_) = hidden_model(3)
    known, graphs = two_relations(3)
    for pairs in graphs:
        vault_of(pairs, context, known, secrets=secrets).advise(TARGET, epsilon="1")
    return found


def test_a_price_for_the_model_reads_none_of_them_either(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(scores_with_a_secret_model(monkeypatch)) == 1


def test_a_score_of_all_her_edges_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VaultClass, "_graph_of", lambda vault, _question: vault._graph)
    assert len(scores_with_a_secret_model(monkeypatch)) > 1


def test_public_pairs_are_known_to_everyone() -> None:
    context = random_world(5).context
    pairs = np.unique(np.concatenate([random_world(5).pairs, context.snapshot.pairs]), axis=0)
    nothing, public = (vault_of(pairs, context, known) for known in (pairs[:0], context.snapshot.pairs))
    assert nothing.advise(TARGET) == public.advise(TARGET)


def test_the_certificate_says_of_which_edges_it_was_computed() -> None:
    world = random_world(1)
    vault = vault_of(world.pairs, world.context, world.pairs[::2])
    advice = vault.advise(TARGET)
    assert advice.of_known_edges
    assert advice.premises[0].startswith("Of your own connections, those were read that the people at both ends know")
    assert Advice.from_json(advice.to_json()) == advice
    assert all(verify_advice(advice, vault).values())
    everything = vault_of(world.pairs, world.context, True).advise(TARGET)
    assert not everything.of_known_edges
    assert "of_known_edges" not in everything.to_dict()


def test_pairs_that_are_not_among_the_edges_are_refused_before_serving() -> None:
    world = random_world(1)
    present = {(int(u), int(w)) for u, w in world.pairs}
    absent = next((u, w) for u in range(NODES) for w in range(u + 1, NODES) if (u, w) not in present)
    with pytest.raises(GraphError, match="has a pair that is not among the private edges"):
        vault_of(world.pairs, world.context, np.array([absent]))
    with pytest.raises(GraphError, match="or another number of nodes"):
        Vault(
            world.graph,
            world.context,
            ledger=MemoryLedger(Limit.of("50")),
            people_know_their_edges=PrivateGraph.from_edges([(0, 1)], number_of_nodes=NODES + 1),
        )


def known_pairs_of(shell: Shell, key: str) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("people_know_their_edges = true", f"people_know_their_edges = {key}"))


def test_a_vault_file_names_the_edges_that_people_know(owner: Shell) -> None:
    everything = owner.ask("advise", "person-3")
    rows = (owner.folder / "edges.csv").read_text().splitlines()
    (owner.folder / "friendships.csv").write_text("\n".join(row for row in rows if "person-3" not in row))
    known_pairs_of(owner, '"friendships.csv"')
    told = owner.ask("advise", "person-3")
    assert told["of_known_edges"]
    assert told["changes"] != everything["changes"]
    said = owner.run("advise", "person-3").stdout
    assert "All other connections of yours count as other people's" in " ".join(said.split())


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        ('"nowhere.csv"', GraphError, "nowhere.csv"),
        ('"nodes.txt"', GraphError, "nodes.txt"),
        ("3", SettingsError, "must be true or false, or the file of the edges that people know"),
    ],
)
def test_what_is_no_such_file_is_the_owner_s_fault(
    owner: Shell, key: str, kind: type[GraphError] | type[SettingsError], words: str
) -> None:
    known_pairs_of(owner, key)
    assert words in owner.fails(kind, "advise", "person-3")
    assert not Path(owner.folder / "budget.db").exists() or owner.ask("budget")["spent"] == "0"
