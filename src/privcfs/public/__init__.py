"""Known to everyone. Nothing in this folder ever sees an edge of the private graph."""
