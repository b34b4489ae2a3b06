-- Who the patients are, in few public categories.
CREATE TABLE person AS
SELECT
    icustay_id, age, gender, admission_type,
    CASE WHEN insurance IN ('Medicare', 'Medicaid', 'Private', 'Government', 'Self Pay') THEN insurance END
        AS insurance,
    CASE
        WHEN ethnicity LIKE 'WHITE%' OR ethnicity LIKE 'PORTUGUESE%' THEN 'white'
        WHEN ethnicity LIKE 'BLACK%' THEN 'black'
        WHEN ethnicity LIKE 'HISPANIC%' OR ethnicity LIKE 'SOUTH AMERICAN%' THEN 'hispanic'
        WHEN ethnicity LIKE 'ASIAN%' THEN 'asian'
        WHEN ethnicity LIKE 'UNKNOWN%' OR ethnicity LIKE 'UNABLE%' OR ethnicity LIKE 'PATIENT DECLINED%' THEN NULL
        WHEN ethnicity IS NOT NULL THEN 'other'
    END AS ethnicity
FROM cohort;
