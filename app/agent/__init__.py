"""The agent: runs on a host that serves, alone, and touches its processes as little as it can."""
