"""Our own releases, audited: each on two neighbouring tables that are as far apart as its sensitivity says.

The tables are made from the schema. No private record is read, nothing is posted, and what is found may be
released.
"""
