"""Many robots on one floor: who may enter which cell when."""
