"""Who is explained: the paper's three protocols over test nodes, everyone, and a larger sample.

"general", "everyone", "sample" and "many" are public. The others look at private margins: they diagnose, no deployment
may use them.
"""

from collections.abc import Callable, Mapping

import numpy as np

from privcfs_lab.measuring.simulate import Simulation


def general(simulation: Simulation) -> list[int]:
    """Sixteen test nodes by a public draw."""
    rng = np.random.default_rng([simulation.seed, 16])
    return sorted(int(node) for node in rng.choice(simulation.data.split.test, 16, replace=False))


def stratified(simulation: Simulation) -> list[int]:
    """Four test nodes from each quartile of the margin."""
    rng = np.random.default_rng([simulation.seed, 4])
    test = simulation.data.split.test
    ranked = test[np.argsort(simulation.margins[test], kind="stable")]
    return sorted(int(node) for part in np.array_split(ranked, 4) for node in rng.choice(part, 4, replace=False))


def borderline(simulation: Simulation) -> list[int]:
    """The ten test nodes of lowest margin."""
    test = simulation.data.split.test
    return sorted(int(node) for node in test[np.argsort(simulation.margins[test], kind="stable")[:10]])


def low_margins(simulation: Simulation) -> list[int]:
    """The hundred test nodes of lowest margin."""
    test = simulation.data.split.test
    return sorted(int(node) for node in test[np.argsort(simulation.margins[test], kind="stable")[:100]])


def everyone(simulation: Simulation) -> list[int]:
    """All test nodes; where there are more than 1,000, a public draw of 1,000."""
    test = simulation.data.split.test
    chosen = test if len(test) <= 1000 else np.random.default_rng(1000).choice(test, 1000, replace=False)
    return sorted(int(node) for node in chosen)


def sample(simulation: Simulation) -> list[int]:
    """Two hundred test nodes by a public draw."""
    rng = np.random.default_rng([simulation.seed, 200])
    test = simulation.data.split.test
    return sorted(int(node) for node in rng.choice(test, min(200, len(test)), replace=False))


def many(simulation: Simulation) -> list[int]:
    """Three hundred test nodes by a public draw."""
    rng = np.random.default_rng([simulation.seed, 300])
    test = simulation.data.split.test
    return sorted(int(node) for node in rng.choice(test, min(300, len(test)), replace=False))


POPULATIONS: Mapping[str, Callable[[Simulation], list[int]]] = {
    "general": general,
    "stratified": stratified,
    "borderline": borderline,
    "low margins": low_margins,
    "everyone": everyone,
    "sample": sample,
    "many": many,
}
