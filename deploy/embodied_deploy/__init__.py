"""What runs beside a robot: the robot contract, its test doubles, links and bridges. NumPy only."""
