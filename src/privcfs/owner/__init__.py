"""What the owner keeps beside the graph: the vault file, the account with its head file, and ties to one budget."""
