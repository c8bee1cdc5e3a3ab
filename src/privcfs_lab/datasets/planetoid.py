"""PubMed (Yang, Cohen and Salakhutdinov 2016) through PyTorch Geometric's own class, which downloads it if need be."""

import io
import warnings
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from privcfs.errors import MissingDependency, SettingsError
from privcfs_lab.datasets.dataset import Dataset, Split, borrowed, undirected


def load(folder: Path) -> Dataset:
    """Raw TF-IDF features, public split. Files that are there are only read."""
    try:
        from torch_geometric.datasets import Planetoid
    except ImportError:
        raise MissingDependency("PubMed is read by torch_geometric; run: pip install 'privcfs[lab]'.") from None
    source = folder / "Planetoid/PubMed"
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            if not (source / "raw").is_dir():
                Planetoid(root=str(source.parent), name="PubMed")
            with borrowed(source) as fresh:
                data = Planetoid(root=str(fresh), name="PubMed")[0]
    except OSError as error:
        hint = "set PRIVCFS_DATA to a folder that holds Planetoid/PubMed/raw"
        raise SettingsError(f"PubMed is neither in {source} nor can it be downloaded ({error}); {hint}.") from None
    masks = (data.train_mask, data.val_mask, data.test_mask)
    return Dataset(
        "pubmed",
        sp.csr_array(data.x.numpy()),
        undirected(*data.edge_index.numpy()),
        data.y.numpy().astype(np.int64),
        Split(*(np.flatnonzero(mask.numpy()) for mask in masks)),
    )
