-- Fernandes et al. 2014: means over the last 24 hours in the unit of the six variables that Fialho et al. (Expert
-- Syst Appl 2012;39:13158-13165) selected; a later stay in the unit that begins within 30 days is a readmission.
WITH back AS (
    SELECT DISTINCT c.icustay_id
    FROM mimic.icustays n
    JOIN cohort c ON c.subject_id = n.subject_id AND c.icustay_id <> n.icustay_id
    WHERE n.intime > c.outtime AND n.intime <= c.outtime + INTERVAL 30 DAY
),
wide AS (
    SELECT
        icustay_id,
        max(mean) FILTER (concept = 'heart_rate') AS heart_rate_mean,
        max(mean) FILTER (concept = 'temperature') AS temperature_mean,
        max(mean) FILTER (concept = 'platelets') AS platelets_mean,
        max(mean) FILTER (concept = 'noninvasive_mean_pressure') AS noninvasive_mean_pressure_mean,
        max(mean) FILTER (concept = 'spo2') AS spo2_mean,
        max(mean) FILTER (concept = 'lactate') AS lactate_mean
    FROM summary GROUP BY icustay_id
)
SELECT
    c.icustay_id,
    w.heart_rate_mean, w.temperature_mean, w.platelets_mean, w.noninvasive_mean_pressure_mean, w.spo2_mean,
    w.lactate_mean,
    (b.icustay_id IS NOT NULL)::INTEGER AS readmitted
FROM cohort c
LEFT JOIN wide w ON w.icustay_id = c.icustay_id
LEFT JOIN back b ON b.icustay_id = c.icustay_id
ORDER BY c.icustay_id;
