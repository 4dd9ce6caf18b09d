"""What can be captured right now, and the one fix for each thing that cannot."""
