"""Many releases: a list of targets in parts, answered on one machine or on a Ray cluster, kept as Parquet."""
