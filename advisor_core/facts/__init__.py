"""Facts: what the host derives from the tables, each once, by name. One module per fact."""
