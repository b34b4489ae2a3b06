"""The Wasserstein GAN of Algorithm 1 (Pedersen 2022), and points that match gradients of random critics.

===================  =================================================================================
`settings`           how both networks are built and trained
`critic`             the critic and the gradients of each record
`networks`           the generator, in TensorFlow and in NumPy, and lists of ``(W, b)``
`sensitivity`        from the critic's weights to centre and noise of its gradient sum
`step`, `training`   one generator step, and the program that makes many of them
`randomness`         where that program's random numbers come from
`checkpoint`         what is kept, privately, of an interrupted run
`gradient_matching`  noisy gradients at random critics, and the points that match them
`matched_points`     those points, sampled without TensorFlow
`recorded_training`  a run of which every step is recorded, for audits
`quiet`              TensorFlow without its start-up messages
===================  =================================================================================

Input: points. Output: a generator. Tables, budgets and the ledger are in :mod:`dpsynth.synthesis`.
"""
