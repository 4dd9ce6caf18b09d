"""What NCCL's RAS says of communicators: read, compared over time, and told."""
