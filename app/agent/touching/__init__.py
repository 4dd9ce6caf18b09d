"""How the agent runs tools and opens files of others: bounded, and never led elsewhere."""
