"""Tools for engineers in the admin page: a playground for parsers, and the runs of the parity suites."""
