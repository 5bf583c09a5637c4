"""Recipes ``base-navigation@1`` and ``base-navigation-mlp@1``: drive a robot base to a goal by its scanner."""
