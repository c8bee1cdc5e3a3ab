"""The only door. Everything that leaves passes here, and is paid first."""
