-- Laboratory values of the cohort's patients in canonical units, from 90 days before the unit (for the latest
-- haemoglobin A1c and the lowest creatinine) to the prediction time; what lies outside the public limits is
-- dropped. Samples drawn before the hospital admission carry no admission, so they are joined by patient.
CREATE TABLE laboratory AS
SELECT
    c.icustay_id, i.concept, l.charttime, l.value AS text,
    round(l.valuenum * i.factor + i.summand, 4) AS value
FROM mimic.labevents l
JOIN item i ON i.source = 'labevents' AND i.itemid = l.itemid
JOIN cohort c
    ON c.subject_id = l.subject_id
    AND l.charttime BETWEEN c.intime - INTERVAL 90 DAY AND c.prediction_time
LEFT JOIN item_limit x ON x.concept = i.concept
WHERE i.concept = 'specimen' OR round(l.valuenum * i.factor + i.summand, 4) BETWEEN x.low AND x.high;
