"""A mobile manipulator: differential base, column, 7-joint arm, parallel gripper, cameras."""
