-- Celi et al. 2011: scores, vital signs, urine and laboratory values of the first 24 hours.
WITH wide AS (
    PIVOT summary ON concept IN (
        'heart_rate', 'systolic', 'mean_pressure', 'respiratory_rate', 'temperature', 'spo2', 'glucose', 'sodium',
        'creatinine', 'urea', 'potassium', 'bicarbonate', 'anion_gap', 'leucocytes', 'haemoglobin',
        'platelets', 'inr', 'bilirubin', 'albumin', 'lactate', 'ph'
    ) USING first(mean) AS mean, first(lowest) AS min, first(highest) AS max GROUP BY icustay_id
)
SELECT
    c.icustay_id,
    p.gender,
    EXISTS (FROM support v WHERE v.icustay_id = c.icustay_id AND v.concept = 'ventilator')::INTEGER AS ventilated,
    p.age, s.sapsii, s.sofa, s.oasis, m.elixhauser, m.charlson, coalesce(k.stage, 0) AS kdigo_stage,
    g.gcs AS gcs_min, u.volume AS urine,
    w.heart_rate_mean, w.systolic_mean, w.mean_pressure_mean, w.respiratory_rate_mean, w.temperature_mean,
    w.spo2_mean, w.glucose_mean, w.sodium_mean,
    w.creatinine_min, w.creatinine_max, w.urea_max, w.potassium_max, w.bicarbonate_min, w.anion_gap_max,
    w.leucocytes_max, w.haemoglobin_min, w.platelets_min, w.inr_max, w.bilirubin_max, w.albumin_min,
    w.lactate_max, w.ph_min,
    c.hospital_expire_flag AS died
FROM cohort c
JOIN person p USING (icustay_id)
JOIN score s USING (icustay_id)
JOIN comorbidity m USING (icustay_id)
LEFT JOIN wide w USING (icustay_id)
LEFT JOIN kdigo k USING (icustay_id)
LEFT JOIN coma g USING (icustay_id)
LEFT JOIN urine u USING (icustay_id)
ORDER BY c.icustay_id;
