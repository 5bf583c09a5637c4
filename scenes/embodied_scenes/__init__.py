"""Scenes as data: descriptions, generators, and builders that compile them for an engine."""
