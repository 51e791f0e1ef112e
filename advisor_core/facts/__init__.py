"""The facts that the host derives from the tables, one module per fact."""
