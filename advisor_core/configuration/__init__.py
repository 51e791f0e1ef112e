"""Settings of a project in a file: ``advisor.toml``, or ``[tool.npu-advisor]`` of ``pyproject.toml``."""
