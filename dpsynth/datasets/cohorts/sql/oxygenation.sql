-- Arterial oxygen over the inspired fraction, mmHg: lowest of the window, and lowest on a ventilator. A sample
-- that says it is not arterial does not count; the fraction is the one on the sample's own form, else the last
-- one charted in the four hours before it. On a ventilator: a sign of one in the six hours up to the sample.
CREATE TABLE oxygenation AS
WITH gas AS (
    SELECT l.icustay_id, l.charttime, min(l.value) AS pao2
    FROM laboratory l JOIN cohort c USING (icustay_id)
    WHERE l.concept = 'pao2' AND l.charttime >= c.window_start
    AND NOT EXISTS (
        FROM laboratory s
        WHERE s.icustay_id = l.icustay_id AND s.charttime = l.charttime
        AND s.concept = 'specimen' AND s.text <> 'ART'
    )
    GROUP BY ALL
),
ratio AS (
    SELECT
        g.icustay_id,
        100 * g.pao2 / coalesce(
            (
                SELECT max(l.value) FROM laboratory l
                WHERE l.icustay_id = g.icustay_id AND l.charttime = g.charttime AND l.concept = 'fio2'
            ),
            (
                SELECT arg_max(f.value, (f.charttime, f.value)) FROM chart f
                WHERE f.icustay_id = g.icustay_id AND f.concept = 'fio2'
                AND f.charttime BETWEEN g.charttime - INTERVAL 4 HOUR AND g.charttime
            )
        ) AS pao2_fio2,
        EXISTS (
            FROM support s
            WHERE s.icustay_id = g.icustay_id AND s.concept = 'ventilator'
            AND s.begun <= g.charttime AND s.ended >= g.charttime - INTERVAL 6 HOUR
        ) AS ventilated
    FROM gas g
)
SELECT
    icustay_id, min(pao2_fio2) AS lowest, min(pao2_fio2) FILTER (ventilated) AS lowest_ventilated
FROM ratio WHERE pao2_fio2 IS NOT NULL
GROUP BY ALL;
