"""Uses of the package that are no part of it: papers, replications, experiments of attackers."""
