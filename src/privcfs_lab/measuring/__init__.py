"""Simulated disclosures, exact measurements of releases on them, and studies that run many of them."""
