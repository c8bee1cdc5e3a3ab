"""Reads edges. The only folder that may; it hands on sealed values only."""
