"""The command line: read arguments, call one function, render."""
