"""The adversary of differential privacy, A_DI: knows both tables, sees every noisy sum, and updates a belief.

MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Bernau et al.), Algorithm 1 and chapter 5.

==============  ======================================================================================
`belief`        log-odds and belief of a :class:`~dpsynth.releases.critic.Transcript`, step by step
`game`          many runs: advantage and exceedance with intervals, beside what is proved
`neighbours`    which record differs: dataset and local sensitivity (Definitions 3 and 6)
==============  ======================================================================================
"""
