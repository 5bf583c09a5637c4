"""Datasets in the layout of LeRobotDataset v3.0, written and read without that library."""
