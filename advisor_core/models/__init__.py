"""The models of a run: frozen, strict, and the single source of the schema of ``report.json`` and of rule files."""
