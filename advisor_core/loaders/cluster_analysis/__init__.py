"""``cluster_analysis_output``: what the cluster analysis of msprof-analyze sums up of the ranks of a job."""
