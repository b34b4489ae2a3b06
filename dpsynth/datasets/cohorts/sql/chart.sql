-- Charted values of the cohort's stays in canonical units, from the window's start to the prediction time;
-- rows marked as errors and values outside the public limits are dropped. What has no limits is kept as text:
-- signs of a ventilator or of dialysis, where 0 and "other" mean absence. A verbal response that a tube
-- prevents is no response that can be scored. An inspired fraction up to 1 is a share, above it a percentage.
CREATE TABLE chart AS
WITH kept AS (
    SELECT
        c.icustay_id, i.concept, i.itemid, e.charttime, e.value AS text, e.valuenum,
        round(e.valuenum * i.factor * if(i.itemid = 223835 AND e.valuenum <= 1, 100, 1) + i.summand, 4) AS value
    FROM mimic.chartevents e
    JOIN item i ON i.source = 'chartevents' AND i.itemid = e.itemid
    JOIN cohort c
        ON c.icustay_id = e.icustay_id AND e.charttime BETWEEN c.window_start AND c.prediction_time
    WHERE coalesce(e.error, 0) <> 1
)
SELECT k.icustay_id, k.concept, k.charttime, k.value
FROM kept k
LEFT JOIN item_limit x ON x.concept = k.concept
WHERE (
    x.concept IS NULL
    AND k.text IS NOT NULL AND k.text NOT IN ('Other/Remarks', 'Other', 'Standby')
    AND coalesce(k.valuenum, 1) > 0
) OR (
    k.value BETWEEN x.low AND x.high
    AND NOT (k.concept = 'gcs_verbal' AND k.text IN ('1.0 ET/Trach', 'No Response-ETT'))
);
