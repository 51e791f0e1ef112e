"""Words by which exporters and frameworks name kernels, lanes and phases."""
