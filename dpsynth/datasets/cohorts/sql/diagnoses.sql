-- Conditions coded in ICD-9-CM, one row an admission, use and condition. A condition's codes are prefixes.
-- "principal": coded only as the reason for the admission (the first code). Codes carry no time in MIMIC-III:
-- they are given at discharge.
CREATE TABLE diagnosis AS
WITH prefix AS (
    SELECT use, condition, unnest(string_split(codes, ' ')) AS code FROM condition_codes
),
coded AS (
    SELECT hadm_id, seq_num, replace(trim(icd9_code), '.', '') AS code FROM mimic.diagnoses_icd
),
cut AS (
    SELECT hadm_id, seq_num, unnest([left(code, 3), left(code, 4), left(code, 5)]) AS code FROM coded
)
SELECT hadm_id, use, condition, min(seq_num) = 1 AND count(DISTINCT seq_num) = 1 AS principal
FROM cut JOIN prefix USING (code)
GROUP BY ALL;
