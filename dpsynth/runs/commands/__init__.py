"""The command line's commands, one module a subject: parse, call, print."""
