"""MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.)."""
