"""What only the comparison of all ranks of a job tells."""
