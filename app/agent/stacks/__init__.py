"""The stacks of all ranks at one moment, by py-spy."""
