"""Which servers run on this host, and which processes are theirs."""
