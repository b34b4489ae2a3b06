"""Make cohorts from hospital databases: one row a patient, with a public schema beside it.

``studies`` says who is in a study and when its predictors are known. ``tables`` reads MIMIC-III's files, and
``extraction`` runs the queries of ``sql``. Item numbers, public limits, the points of scores and diagnosis
codes are the tables of ``definitions``.
"""
