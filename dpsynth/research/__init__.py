"""What rests on the package and is no part of it: papers, replications, experiments of attackers."""
