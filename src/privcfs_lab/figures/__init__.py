"""Figures: one file each. They read records and draw; legible in grey, no legend over data."""
