"""What console and agent say to each other, and how each knows that the other said it."""
