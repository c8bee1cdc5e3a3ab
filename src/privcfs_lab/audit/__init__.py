"""Checks that a release is private, and deliberately broken twins that each check must reject."""
