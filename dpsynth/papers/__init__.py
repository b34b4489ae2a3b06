"""The papers' own theory, figures and golden values, source by source; nothing that a run needs is here."""
