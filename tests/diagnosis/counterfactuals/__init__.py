"""What the step of a job would be without some of its causes: as predicted from its recording, and in truth."""
