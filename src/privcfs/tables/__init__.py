"""Files and other libraries' objects into checked arrays and back; used by the owner before a vault serves."""
