"""Skills of the mobile manipulator in a house."""
