-- The highest rate of each catecholamine in the window, ug/kg/min; rates per minute are divided by the first
-- weight of the window, and other units are no rate. CareVue charts rates at times, MetaVision over intervals.
CREATE TABLE vasopressor AS
WITH rates AS (
    SELECT c.icustay_id, i.concept, v.rate, v.rateuom
    FROM mimic.inputevents_cv v
    JOIN item i ON i.source = 'inputevents_cv' AND i.itemid = v.itemid
    JOIN cohort c ON c.icustay_id = v.icustay_id AND v.charttime BETWEEN c.window_start AND c.prediction_time
    UNION ALL
    SELECT c.icustay_id, i.concept, v.rate, v.rateuom
    FROM mimic.inputevents_mv v
    JOIN item i ON i.source = 'inputevents_mv' AND i.itemid = v.itemid
    JOIN cohort c
        ON c.icustay_id = v.icustay_id AND v.starttime <= c.prediction_time AND v.endtime >= c.window_start
    WHERE coalesce(v.statusdescription, '') <> 'Rewritten'
),
by_weight AS (
    SELECT
        r.icustay_id, r.concept,
        CASE replace(lower(r.rateuom), '/', '')
            WHEN 'mcgkgmin' THEN r.rate
            WHEN 'mcgmin' THEN r.rate / w.first
        END AS rate
    FROM rates r
    LEFT JOIN summary w ON w.icustay_id = r.icustay_id AND w.concept = 'weight'
)
SELECT b.icustay_id, b.concept, max(round(b.rate, 4)) AS rate
FROM by_weight b JOIN item_limit x USING (concept)
WHERE b.rate BETWEEN x.low AND x.high
GROUP BY ALL;
