"""The leave-two-unlabeled (LTU) attacker: the most knowing attacker of membership, on any trainer.

The defender trains a model on records D and keeps records R aside. In each round the attacker is shown one
record of each without its label, is told the labels of all others, and holds the trained model and the
trainer. Which of the two was trained on? (Pedersen 2022, sections 4.2 and 5.1.)

`samples`        the records of both sides, and what the trainer is given
`trainers`       a trainer around any scikit-learn classifier; the ten of the thesis; what models say
`scores`         Theorem 4.2.1: the record with the smaller score was trained on; Theorem 4.2.2: guess
                 at random in proportion to a bounded loss
`learned`        the same with scores combined by what the attacker knows of the other records
`retraining`     Theorem 4.2.4: train with each of the two and compare
`evidence`       the Bayes attack (5.8), (5.13) on Gaussian-fitted outputs
`rounds`         one round, with every strategy
`outcomes`       privacy (4.9), individual scores, pairs against single records, low false positive rates
`experiment`     many rounds on one trainer, kept in a folder
`results`        what they found; `telling`: the same as text
`generators`     generators, attacked through a score such as a critic's (`critic_scores`)
`enumeration`    trainers with finitely many outcomes, exactly: Theorems 5.2.1 and 5.2.2
"""
