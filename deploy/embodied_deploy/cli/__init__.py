"""The command ``embodied-edge``."""
