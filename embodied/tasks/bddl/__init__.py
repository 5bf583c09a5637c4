"""Behaviour domain definitions (BDDL): read problem files and ground their goals."""

from embodied.tasks.bddl.ground import ground_goal
from embodied.tasks.bddl.problem import Problem, parse_problem

__all__ = ["Problem", "ground_goal", "parse_problem"]
