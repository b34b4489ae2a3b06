"""Rules that turn measures into findings: a severity, one sentence, and the measures it rests on."""
