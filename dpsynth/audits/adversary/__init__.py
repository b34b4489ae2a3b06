"""The adversary A_DI against trainings of this package: many runs, half of them with the differing record.

==============  ======================================================================================
`setting`       what is played, and which two tables
`critic`        our own critic
`quick`         a few seconds' worth, for the report of a run
==============  ======================================================================================

Everything here reads real records without payment, so that its results are internal.
"""
