"""From released numbers to samples: densities of columns, base model, reweighting, the WGAN."""
