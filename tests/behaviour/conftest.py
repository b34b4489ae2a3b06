"""Modules here import each other by name, because `record.py` is a script too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
