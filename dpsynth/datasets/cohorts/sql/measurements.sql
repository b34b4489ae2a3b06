-- What was measured in the window, from both sources, and its summary: one row a stay and concept. Sums are of
-- decimals, so that they are the same in whichever order rows are read.
CREATE TABLE measurement AS
SELECT icustay_id, concept, charttime, value FROM chart WHERE concept IN (SELECT concept FROM item_limit)
UNION ALL
SELECT l.icustay_id, l.concept, l.charttime, l.value
FROM laboratory l JOIN cohort c USING (icustay_id)
WHERE l.concept <> 'specimen' AND l.charttime >= c.window_start;

CREATE TABLE summary AS
SELECT
    icustay_id, concept,
    min(value) AS lowest, max(value) AS highest, avg(value::DECIMAL(18, 4)) AS mean,
    arg_min(value, (charttime, value)) AS first
FROM measurement
GROUP BY ALL;
