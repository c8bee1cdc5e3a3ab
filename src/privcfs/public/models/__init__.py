"""Frozen models: what is explained. One file per kind."""
