"""What both exports derive from a timeline before either of them writes it, so that they cannot disagree."""
