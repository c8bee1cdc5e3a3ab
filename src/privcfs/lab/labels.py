"""Public labels from a file, for training a public model."""

import csv
from pathlib import Path

import numpy as np

from privcfs.errors import ContextError, SettingsError
from privcfs.files import EdgeListReader, Nodes, read_features
from privcfs.lab.training import Labelled


def labelled_from(features: Path, snapshot: Path, labels: Path) -> Labelled:
    """Features, snapshot pairs, and rows node,class; nodes without a row are not learned from."""
    table = read_features(features, ContextError)
    count = int(table.shape[0])
    pairs = EdgeListReader("snapshot", ContextError, Nodes(count)).read(snapshot)
    classes = np.zeros(count, np.int64)
    known = []
    try:
        rows = [row for row in csv.reader(labels.read_text(encoding="utf-8").splitlines()) if row]
        for node, label in rows[1:] if rows and not rows[0][0].strip().isdigit() else rows:
            known.append(int(node))
            classes[known[-1]] = int(label)
    except (OSError, ValueError, IndexError) as error:
        raise SettingsError(f"labels {labels} cannot be read ({error}); write rows node,class.") from None
    if not known or classes.min() < 0:
        raise SettingsError(f"labels {labels} names no node, or a class below 0; write rows node,class.")
    return Labelled(table, pairs, classes, np.array(sorted(set(known)), np.int64))
