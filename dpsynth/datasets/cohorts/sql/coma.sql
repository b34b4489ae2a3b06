-- Glasgow Coma Scale (Teasdale and Jennett, Lancet 1974;304:81-84): the lowest sum of the three parts that were
-- charted together. Where a tube or a tracheostomy prevents speech there is no sum: SAPS II takes the scale
-- before sedation, which MIMIC-III does not have, so a patient who was intubated throughout has none.
CREATE TABLE coma AS
WITH sums AS (
    SELECT
        icustay_id, charttime,
        min(value) FILTER (concept = 'gcs_eye') + min(value) FILTER (concept = 'gcs_motor')
        + min(value) FILTER (concept = 'gcs_verbal') AS gcs
    FROM chart
    WHERE concept IN ('gcs_eye', 'gcs_motor', 'gcs_verbal')
    GROUP BY ALL
)
SELECT icustay_id, min(gcs) AS gcs FROM sums WHERE gcs IS NOT NULL GROUP BY ALL;
