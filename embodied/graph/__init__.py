"""Truth graph and belief graphs."""
