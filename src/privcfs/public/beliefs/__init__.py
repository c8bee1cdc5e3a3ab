"""What public data let one expect of the private graph, and the draw that this makes best."""
