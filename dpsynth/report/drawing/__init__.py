"""Curves, forest plots, heat maps and small panels, as SVG that comes out the same each time."""
