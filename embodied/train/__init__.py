"""Training: recipes, runs, checkpoints, datasets. The one folder beside ``embodied.export`` that may import torch."""
