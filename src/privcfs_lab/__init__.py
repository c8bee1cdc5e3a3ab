"""Sees both sides and releases nothing: experiments, audits and benchmarks. Nothing imports it."""

from privcfs_lab.measuring.inspection import Inspection, inspect

__all__ = ["Inspection", "inspect"]
