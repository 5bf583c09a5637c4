"""The compact planner of the agents: images and an instruction in, one skill at a time out."""
