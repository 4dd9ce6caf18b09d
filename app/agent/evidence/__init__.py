"""What a host can tell beside stacks and coredumps: cheap, and only read."""
