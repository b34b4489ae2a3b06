-- Fernandes et al. 2014: means over the last 24 hours in the unit of the six variables that Fialho et al. (Expert
-- Syst Appl 2012;39:13158-13165) selected; a later stay in the unit that begins within 30 days is a readmission.
SELECT
    c.icustay_id,
    max(s.mean) FILTER (s.concept = 'heart_rate') AS heart_rate_mean,
    max(s.mean) FILTER (s.concept = 'temperature') AS temperature_mean,
    max(s.mean) FILTER (s.concept = 'platelets') AS platelets_mean,
    max(s.mean) FILTER (s.concept = 'noninvasive_mean_pressure') AS noninvasive_mean_pressure_mean,
    max(s.mean) FILTER (s.concept = 'spo2') AS spo2_mean,
    max(s.mean) FILTER (s.concept = 'lactate') AS lactate_mean,
    EXISTS (
        FROM mimic.icustays n
        WHERE n.subject_id = c.subject_id AND n.icustay_id <> c.icustay_id
        AND n.intime > c.outtime AND n.intime <= c.outtime + INTERVAL 30 DAY
    )::INTEGER AS readmitted
FROM cohort c
LEFT JOIN summary s USING (icustay_id)
GROUP BY ALL
ORDER BY c.icustay_id;
