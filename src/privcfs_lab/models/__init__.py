"""Models other than the two-layer GCN, trained in the laboratory."""
