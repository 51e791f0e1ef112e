"""Values that both exports derive from a timeline before either writes them, so that they cannot disagree."""
