"""The command line's commands, one module a subject: parse, call, print.

`console` has what all of them do alike. `costs` computes what ``account`` and ``calibrate`` tell, `cost_text`
puts it into words, and `mechanisms` are those that can be named there.
"""
