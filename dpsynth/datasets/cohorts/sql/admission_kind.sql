-- Surgical or not: the service in charge when the patient came to the unit, else the first one after it.
CREATE TABLE admission_kind AS
WITH in_charge AS (
    SELECT
        c.icustay_id, c.admission_type = 'ELECTIVE' AS elective,
        coalesce(
            arg_max(s.curr_service, (s.transfertime, s.curr_service)) FILTER (s.transfertime <= c.intime),
            arg_min(s.curr_service, (s.transfertime, s.curr_service))
        ) AS service
    FROM cohort c
    LEFT JOIN mimic.services s ON s.hadm_id = c.hadm_id AND s.transfertime <= c.prediction_time
    GROUP BY ALL
)
SELECT icustay_id, elective, coalesce(service LIKE '%SURG' OR service = 'ORTHO', false) AS surgical
FROM in_charge;
