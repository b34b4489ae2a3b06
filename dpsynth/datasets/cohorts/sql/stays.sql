-- One row an ICU stay, with what is known of patient and admission.
-- Age is in full years at admission to the unit. MIMIC-III moves the birth of patients older than 89 to 300
-- years before their first admission; they and all others of 90 or more are told as 90, a public cap.
CREATE TABLE stay AS
WITH joined AS (
    SELECT
        i.subject_id, i.hadm_id, i.icustay_id, i.intime, i.outtime,
        a.admittime, a.dischtime, a.deathtime, a.hospital_expire_flag,
        a.admission_type, a.insurance, a.ethnicity, p.gender,
        least(date_sub('year', p.dob, i.intime), 90) AS age
    FROM mimic.icustays i
    JOIN mimic.admissions a USING (hadm_id)
    JOIN mimic.patients p ON p.subject_id = i.subject_id
)
SELECT *, {prediction_time} AS prediction_time, {window_start} AS window_start
FROM joined;
