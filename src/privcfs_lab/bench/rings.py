"""Graphs of any size in which all surroundings are alike: a ring with the same chords everywhere, scattered."""

from collections.abc import Iterator, Sequence
from math import gcd
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import ContextError
from privcfs.public.models.gcn import GCN
from privcfs.tables.store import FEATURES as TABLE
from privcfs.tables.store import PAIRS, StoreWriter

STEPS = (1, 2, 3, 40, 170, 431, 977, 1402, 2213, 3391)  # to both sides: twenty neighbours, a few triangles
FEATURES = 128
OWN = 16  # features of one node
PERIOD = 10**4  # nodes after which features come again
BLOCK = 2**18  # nodes at a time


def stride(nodes: int) -> int:
    """Scatters numbers: the node at a place of the ring has the number place x stride, so neighbours lie far apart."""
    return next(step for step in range(int(nodes * 0.618), nodes) if gcd(step, nodes) == 1)


def ring_pairs(nodes: int, steps: Sequence[int] = STEPS) -> Iterator[NDArray[np.int64]]:
    """Every pair once, some at a time."""
    for start in range(0, nodes, BLOCK):
        place = np.arange(start, min(start + BLOCK, nodes))
        for step in steps:
            yield np.column_stack([place, place + step]) * stride(nodes) % nodes


def write_ring(path: Path, nodes: int, steps: Sequence[int] = STEPS) -> None:
    """The pairs as a CSV or Parquet file."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    schema = pyarrow.schema([("source", pyarrow.int64()), ("target", pyarrow.int64())])
    write = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pyarrow.parquet.ParquetWriter
    with write(path, schema) as file:
        for pairs in ring_pairs(nodes, steps):
            file.write_table(pyarrow.table([pairs[:, 0], pairs[:, 1]], schema=schema))


def ring_model() -> GCN:
    """A model that decides about these features, and about any others of that number."""
    rng = np.random.default_rng(0)
    first, second = 0.3 * rng.normal(size=(FEATURES, 32)), rng.normal(size=(32, 7))
    return GCN(first.astype(np.float32), second.astype(np.float32))


def write_ring_features(path: Path, nodes: int) -> None:
    """Sixteen features of weight 1 for each node, the same at the same place of rings of every size, as a store."""
    rng = np.random.default_rng(0)
    known = np.sort(rng.random((PERIOD, FEATURES)).argpartition(OWN, axis=1)[:, :OWN], axis=1)
    back = pow(stride(nodes), -1, nodes)
    with StoreWriter(path, TABLE, ContextError) as writer:
        writer.append("starts", np.arange(nodes + 1) * OWN)
        for start in range(0, nodes, BLOCK):
            place = np.arange(start, min(start + BLOCK, nodes)) * back % nodes
            writer.append("numbers", known[place % PERIOD].ravel())
            writer.append("values", np.ones(len(place) * OWN, np.float32))
        writer.finish(nodes, FEATURES)


def write_ring_store(path: Path, nodes: int, steps: Sequence[int] = STEPS) -> None:
    """The pairs as a store, without importing them."""
    back = pow(stride(nodes), -1, nodes)
    both_ways = np.array([*steps, *(-step for step in steps)])
    with StoreWriter(path, PAIRS, ContextError) as writer:
        writer.append("starts", np.arange(nodes + 1) * len(both_ways))
        for start in range(0, nodes, BLOCK):
            place = np.arange(start, min(start + BLOCK, nodes)) * back % nodes
            others = (place[:, None] + both_ways) % nodes * stride(nodes) % nodes
            writer.append("others", np.sort(others, axis=1).ravel())
        writer.finish(nodes, nodes)
