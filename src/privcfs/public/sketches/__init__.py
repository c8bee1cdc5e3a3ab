"""A sketch of the hidden pairs: a one-time private release, as evidence for beliefs about everyone."""
