"""Skills of flying robots."""
