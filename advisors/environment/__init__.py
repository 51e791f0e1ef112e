"""What environment variables mean for the recorded job, whether or not a recording has their values."""
