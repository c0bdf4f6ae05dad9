"""The command line (layer 6): parse, call, print."""
