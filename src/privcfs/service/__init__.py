"""The service: many analysts, one budget. Sees vaults and public data, never a private graph."""
