"""Gates of a pipeline: conditions on a result, and the baseline that they may be held against."""
