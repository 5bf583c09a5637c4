"""From scene descriptions to compiled models. The only part of this package that imports an engine."""

from embodied_scenes.builders.compile import CompiledScene, RobotMount, compile_scene
from embodied_scenes.resolve import SceneBuildError

__all__ = ["CompiledScene", "RobotMount", "SceneBuildError", "compile_scene"]
