-- SAPS II (Le Gall, Lemeshow, Saulnier, JAMA 1993;270:2957-2963), SOFA (Vincent et al., Intensive Care Med
-- 1996;22:707-710) and OASIS (Johnson, Kramer, Clifford, Crit Care Med 2013;41:1711-1718) from the points in
-- definitions/points.csv: low <= value < high. Of an organ's values the one with most points counts; a value
-- that was not measured is taken as normal, as the scores' authors do.
CREATE TABLE component AS
SELECT DISTINCT icustay_id, concept AS component, value FROM measurement
UNION ALL SELECT icustay_id, 'gcs', gcs FROM coma
UNION ALL SELECT icustay_id, 'urine', volume FROM urine
UNION ALL SELECT icustay_id, concept, rate FROM vasopressor
UNION ALL SELECT icustay_id, 'pao2_fio2', lowest FROM oxygenation
UNION ALL SELECT icustay_id, 'pao2_fio2_ventilated', lowest_ventilated FROM oxygenation
UNION ALL SELECT DISTINCT icustay_id, 'ventilated', 1 FROM support WHERE concept = 'ventilator'
UNION ALL SELECT icustay_id, 'age', age FROM cohort
UNION ALL SELECT icustay_id, 'hours_before_unit', epoch(intime - admittime) / 3600 FROM cohort
UNION ALL SELECT icustay_id, 'elective_surgery', (elective AND surgical)::INTEGER FROM admission_kind
UNION ALL SELECT icustay_id, 'medical_admission', 1 FROM admission_kind WHERE NOT surgical
UNION ALL SELECT icustay_id, 'unscheduled_surgery', 1 FROM admission_kind WHERE surgical AND NOT elective
UNION ALL
SELECT c.icustay_id, d.condition, 1
FROM cohort c JOIN diagnosis d ON d.hadm_id = c.hadm_id WHERE d.use = 'sapsii';

CREATE TABLE organ_points AS
SELECT v.icustay_id, p.score, p.organ, max(p.points) AS points
FROM component v
JOIN points p
    ON p.component = v.component
    AND v.value >= coalesce(p.low, '-inf'::DOUBLE) AND v.value < coalesce(p.high, 'inf'::DOUBLE)
GROUP BY ALL;

CREATE TABLE score AS
SELECT
    c.icustay_id,
    coalesce(sum(o.points) FILTER (o.score = 'sapsii'), 0)::INTEGER AS sapsii,
    coalesce(sum(o.points) FILTER (o.score = 'sofa'), 0)::INTEGER AS sofa,
    coalesce(sum(o.points) FILTER (o.score = 'oasis'), 0)::INTEGER AS oasis
FROM cohort c LEFT JOIN organ_points o USING (icustay_id)
GROUP BY ALL;
