"""The command line: parse, call one function, print what it says."""
