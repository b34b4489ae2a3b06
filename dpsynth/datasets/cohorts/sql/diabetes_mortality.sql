-- Anand et al. 2018: the latest haemoglobin A1c and the mean glucose of the first 24 hours, scores, and who the
-- patient is.
WITH a1c AS (
    SELECT icustay_id, arg_max(value, (charttime, value)) AS value
    FROM laboratory WHERE concept = 'haemoglobin_a1c' GROUP BY ALL
)
SELECT
    c.icustay_id,
    p.age, p.gender, p.ethnicity, p.insurance, p.admission_type,
    a.value AS haemoglobin_a1c, g.mean AS glucose_mean,
    s.sapsii, s.sofa, s.oasis, m.elixhauser,
    c.hospital_expire_flag AS died
FROM cohort c
JOIN person p USING (icustay_id)
JOIN a1c a USING (icustay_id)
JOIN score s USING (icustay_id)
JOIN comorbidity m USING (icustay_id)
LEFT JOIN summary g ON g.icustay_id = c.icustay_id AND g.concept = 'glucose'
ORDER BY c.icustay_id;
