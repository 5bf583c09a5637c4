"""Arms: serial chains, inverse kinematics, joint trajectories, joint impedance."""
