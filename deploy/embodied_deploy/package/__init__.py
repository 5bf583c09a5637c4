"""Policy packages: one file with a graph, its contract, parity vectors and a signature."""
