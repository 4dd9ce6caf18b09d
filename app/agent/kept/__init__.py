"""What the agent keeps on its disk: what it took, what it did, who it is."""
