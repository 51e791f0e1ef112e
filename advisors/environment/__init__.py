"""The meaning of environment variables for the recorded job, whether or not a recording has their values."""
