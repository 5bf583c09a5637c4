"""Skills of every robot: talking, waiting, ending."""
