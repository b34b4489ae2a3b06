"""Curves, forest plots, heat maps and small panels, as reproducible SVG."""
