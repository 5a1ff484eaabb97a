"""What experiments share: agents, solvers on a clock, abstracted games."""
