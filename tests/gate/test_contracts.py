"""Contracts: exact where they can be, safe where they round, and never mixed."""

from dataclasses import replace
from fractions import Fraction
from math import exp, expm1, log
from pathlib import Path

import numpy as np
import pytest

from privcfs import Limit, Method, Vault
from privcfs.errors import BadEpsilon, BudgetExhausted, RequestConflict, SettingsError
from privcfs.gate.contracts import (
    FixedPrice,
    Pure,
    ZeroConcentrated,
    composed,
    concentrated,
    contract_from,
    from_rho,
    parse_delta,
)
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.mechanisms.worst_case import ENDS
from privcfs.private.utilities.utility import Scores
from tests.worlds import random_world

DELTA = 1e-6
ONE = Fraction(1)
PRICES = [Fraction(1, 10), ONE, Fraction(4), Fraction(8)]


def worst_pairs(mechanism: Mechanism, epsilon: Fraction) -> list[tuple[np.ndarray, np.ndarray]]:
    """Laws on two hostile score vectors: one against many, and half against half."""
    found = []
    for count, ahead in ((101, 1), (40, 20), (40, 10), (2, 1)):
        first, second = np.zeros(count, np.int64), np.full(count, 2)
        first[:ahead], second[:ahead] = 2, 0
        laws = [mechanism.probabilities(Scores(one, ENDS), epsilon) for one in (first, second)]
        found += [(laws[0], laws[1]), (laws[1], laws[0])]
    return found


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_no_hostile_pair_passes_the_stated_divergence_or_rho(mechanism: Mechanism, epsilon: Fraction) -> None:
    rho = float(concentrated(mechanism, epsilon))
    assert rho <= float(epsilon) ** 2 / 2 + 1e-9
    for order in (1.01, 1.5, 2.0, 4.0, 16.0):
        for p, q in worst_pairs(mechanism, epsilon):
            found = divergence(p, q, order)
            assert found <= mechanism.renyi(order, epsilon) + 1e-9
            assert found <= rho * order + 1e-9


@pytest.mark.parametrize(
    ("share", "price"), [("131/262144", "2"), ("1/100", "1"), ("1/2000", "0.0005"), ("1/5", "0.01")]
)
def test_no_order_between_those_that_were_tried_passes_the_charged_rho(share: str, price: str) -> None:
    mechanism, epsilon = SubsetSelection(Fraction(share)), Fraction(price)
    charged = float(concentrated(mechanism, epsilon))
    orders = 1 + np.geomspace(1e-5, 600 / float(epsilon), 50_021)
    most = max(mechanism.renyi(float(order), epsilon) / order for order in orders[:: 1 if epsilon < 1 else 7])
    assert most <= charged <= 1.02 * most + 2e-9


def test_stated_epsilons_are_rounded_up() -> None:
    assert "(7.767," in ZeroConcentrated().meaning(ONE)
    assert "(24.544," in FixedPrice(ONE, Exponential()).meaning(Fraction(56))
    with pytest.raises(SettingsError, match="of the table"):
        FixedPrice(ONE, SubsetSelection(Fraction(1, 2)))


def test_a_paid_request_is_not_drawn_from_something_dearer(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "b.db", Limit.of("5", contract=ZeroConcentrated()))
    request = Request("ann", "a", 0, ONE, "d", "m", "any", cost=Fraction(1, 10))
    assert ledger.charge(request) is None
    assert ledger.charge(request) is None
    with pytest.raises(RequestConflict, match="was paid when it cost less"):
        ledger.charge(replace(request, cost=Fraction(2, 10)))


def test_a_mechanism_that_states_too_little_is_noticed() -> None:
    stated = Exponential().renyi(2.0, ONE)
    assert any(divergence(p, q, 2.0) > stated for p, q in worst_pairs(PermuteAndFlip(), ONE))
    assert any(divergence(p, q, 2.0) > stated for p, q in worst_pairs(SubsetSelection(), ONE))


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
def test_the_exponential_mechanism_has_the_known_constant(epsilon: Fraction) -> None:
    ratio = float(epsilon) / expm1(epsilon)
    assert abs(float(concentrated(Exponential(), epsilon)) - (ratio - 1 - log(ratio))) < 1e-3 * float(epsilon)
    assert concentrated(Exponential(), epsilon) <= epsilon**2 / 8 + Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("price", "count", "expected"), [("1", 100, 36.4), ("1", 1000, 202.6), ("0.1", 1000, 8.84), ("8", 100, 617)]
)
def test_a_fixed_price_composes_as_published(price: str, count: int, expected: float) -> None:
    found = composed(Exponential(), Fraction(price), count, DELTA)
    assert abs(found / expected - 1) < 0.01


def test_dp_accounting_and_autodp_and_opendp_agree() -> None:
    import opendp.prelude as dp
    from autodp import rdp_acct
    from dp_accounting.pld import privacy_loss_distribution as pld
    from opendp.measures import fixed_smoothed_max_divergence  # noqa: F401

    mechanism, epsilon = SubsetSelection(), ONE
    (p, q), *_ = worst_pairs(mechanism, epsilon)[4:]
    logs = [{str(k): log(value) for k, value in enumerate(law)} for law in (p, q)]
    loss = pld.from_two_probability_mass_functions(*logs, value_discretization_interval=1e-3)
    assert loss.self_compose(50).get_epsilon_for_delta(DELTA) <= composed(mechanism, epsilon, 50, DELTA) + 0.1
    accountant = rdp_acct.anaRDPacct()
    accountant.compose_mechanism(lambda order: mechanism.renyi(max(order, 1 + 1e-6), epsilon), coeff=50)
    assert abs(accountant.get_eps(DELTA) / composed(mechanism, epsilon, 50, DELTA) - 1) < 0.05
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    noisy = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=2.0)
    assert float(concentrated(Exponential(), ONE)) <= noisy.map(1) <= 0.1251
    approximate = dp.c.make_zCDP_to_approxDP(noisy)
    assert from_rho(0.125, DELTA) <= approximate.map(1).epsilon(DELTA) * 1.01 + 0.01


def test_the_stated_epsilon_covers_the_exact_loss_of_many_releases() -> None:
    """The exact loss of k releases on the worst pair, by enumerating how many of them fall on either side."""
    from scipy.stats import binom

    epsilon, count = Fraction(1), 60
    q = 1 / (1 + exp(0.5))
    high = exp(1) / (1 + q * expm1(1))
    losses = np.arange(count + 1) * 1.0 + count * log(high / exp(1))
    chances = binom.pmf(np.arange(count + 1), count, q * high)
    stated = composed(Exponential(), epsilon, count, DELTA)
    delta = float(np.sum(chances * np.maximum(1 - np.exp(stated - losses), 0)))
    assert delta <= DELTA
    rho = count * float(concentrated(Exponential(), epsilon))
    assert float(np.sum(chances * np.maximum(1 - np.exp(from_rho(rho, DELTA) - losses), 0))) <= DELTA
    assert stated <= from_rho(rho, DELTA) <= rho + 2 * (rho * log(1 / DELTA)) ** 0.5


def test_a_vault_charges_what_its_contract_counts(tmp_path: Path) -> None:
    world = random_world(4)
    ledger = SqliteLedger(tmp_path / "rho.db", Limit.of("1", contract=ZeroConcentrated()))
    vault = Vault(world.graph, world.context, ledger=ledger, method=Method())
    for _ in range(8):
        vault.release(0, "1")
    each = concentrated(Exponential(), ONE)
    assert vault.balance().spent == 8 * each
    assert vault.balance().unit == "rho"
    with pytest.raises(BudgetExhausted, match=r"rho 0\.123"):
        vault.release(0, "1")
    again = SqliteLedger(tmp_path / "rho.db")
    assert again.limit == Limit.of("1", contract=ZeroConcentrated())
    with pytest.raises(SettingsError, match="a ledger keeps its contract"):
        again.change_limit(Limit.of("1"))
    with pytest.raises(SettingsError, match="limit differs"):
        SqliteLedger(tmp_path / "rho.db", Limit.of("1"))


def test_a_fixed_price_is_one_price_and_one_mechanism(tmp_path: Path) -> None:
    world, contract = random_world(4), FixedPrice(ONE, Exponential())
    ledger = SqliteLedger(tmp_path / "fixed.db", Limit.of("2", contract=contract))
    vault = Vault(world.graph, world.context, ledger=ledger, method=Method())
    vault.release(0, "1")
    with pytest.raises(BadEpsilon, match="every release of this vault has 1"):
        vault.release(0, "2")
    vault.release(1, "1")
    with pytest.raises(BudgetExhausted, match="releases 1 does not fit"):
        vault.release(1, "1")
    other = Vault(world.graph, world.context, ledger=ledger, method=Method(mechanism=PermuteAndFlip()))
    with pytest.raises(SettingsError, match="for exponential alone"):
        other.release(0, "1")


@pytest.mark.parametrize("contract", [Pure(), ZeroConcentrated(Fraction(1, 1000)), FixedPrice(ONE, Exponential())])
def test_contracts_are_kept_as_they_are(contract: Pure | ZeroConcentrated | FixedPrice) -> None:
    assert contract_from(contract.to_dict()) == contract
    assert "together" in contract.meaning(Fraction(10))


def test_a_contract_that_makes_no_sense_is_refused() -> None:
    for wrong in ({"kind": "magic"}, {"kind": "pure", "delta": "0.1"}, {"kind": "fixed", "mechanism": "none"}):
        with pytest.raises((SettingsError, BadEpsilon)):
            contract_from(wrong)
    for delta in ("0", "1", "x"):
        with pytest.raises(SettingsError):
            parse_delta(delta)
