-- Stage of acute kidney injury, 0 to 3, in the first 24 hours: KDIGO Clinical Practice Guideline for Acute Kidney
-- Injury (Kidney Int Suppl 2012;2:1-138), table 2, the worse of creatinine and urine.
-- Creatinine: a rise of 0.3 mg/dL within 48 hours or to 1.5 times the lowest value of the 7 days before; 2 and 3
-- times it for stages 2 and 3, which is also 4.0 mg/dL after such a rise, or dialysis.
-- Urine: below 0.5 mL/kg/h over 6 (stage 1) or 12 hours (2), below 0.3 over 24 hours or none over 12 (3), in
-- windows that end at a charted volume and lie wholly in the unit; over 24 hours in the whole window. Weight: the
-- first of the window; without one, or without any urine charted, creatinine decides alone.
CREATE TABLE kdigo AS
WITH creatinine AS (
    SELECT icustay_id, charttime, value FROM laboratory WHERE concept = 'creatinine'
),
rise AS (
    SELECT
        n.icustay_id, n.charttime, n.value,
        n.value / min(b.value) AS ratio,
        n.value - min(b.value) FILTER (b.charttime >= n.charttime - INTERVAL 48 HOUR) AS increase
    FROM creatinine n
    JOIN cohort c ON c.icustay_id = n.icustay_id AND n.charttime >= c.window_start
    JOIN creatinine b
        ON b.icustay_id = n.icustay_id
        AND b.charttime BETWEEN n.charttime - INTERVAL 7 DAY AND n.charttime
    GROUP BY n.icustay_id, n.charttime, n.value
),
by_creatinine AS (
    SELECT icustay_id, max(CASE
        WHEN round(ratio, 6) >= 3 THEN 3
        WHEN value >= 4 AND (round(increase, 6) >= 0.3 OR round(ratio, 6) >= 1.5) THEN 3
        WHEN round(ratio, 6) >= 2 THEN 2
        WHEN round(ratio, 6) >= 1.5 OR round(increase, 6) >= 0.3 THEN 1
        ELSE 0
    END) AS stage
    FROM rise GROUP BY ALL
),
output AS (
    SELECT
        t.icustay_id, t.charttime - c.intime AS since, w.first AS weight,
        sum(u.volume) FILTER (u.charttime > t.charttime - INTERVAL 6 HOUR)::DOUBLE AS volume_6,
        sum(u.volume)::DOUBLE AS volume_12
    FROM urine_charted t
    JOIN cohort c USING (icustay_id)
    JOIN summary w ON w.icustay_id = t.icustay_id AND w.concept = 'weight'
    JOIN urine_charted u
        ON u.icustay_id = t.icustay_id
        AND u.charttime > t.charttime - INTERVAL 12 HOUR AND u.charttime <= t.charttime
    GROUP BY t.icustay_id, t.charttime, c.intime, w.first
),
by_urine AS (
    SELECT icustay_id, max(CASE
        WHEN since >= INTERVAL 12 HOUR AND volume_12 <= 0 THEN 3
        WHEN since >= INTERVAL 12 HOUR AND volume_12 / weight / 12 < 0.5 THEN 2
        WHEN since >= INTERVAL 6 HOUR AND volume_6 / weight / 6 < 0.5 THEN 1
        ELSE 0
    END) AS stage
    FROM output GROUP BY ALL
    UNION ALL
    SELECT u.icustay_id, 3
    FROM urine u JOIN summary w ON w.icustay_id = u.icustay_id AND w.concept = 'weight'
    WHERE u.volume / w.first / 24 < 0.3
),
stages AS (
    FROM by_creatinine
    UNION ALL FROM by_urine
    UNION ALL SELECT icustay_id, 3 FROM support WHERE concept = 'dialysis'
)
SELECT icustay_id, max(stage) AS stage FROM stages GROUP BY ALL;
