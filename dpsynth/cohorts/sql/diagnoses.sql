-- Conditions coded in ICD-9-CM, one row an admission, use and condition. A condition's codes are prefixes.
-- "principal": coded only as the reason for the admission (the first code). Codes carry no time in MIMIC-III:
-- they are given at discharge.
CREATE TABLE diagnosis AS
WITH prefix AS (
    SELECT use, condition, unnest(string_split(codes, ' ')) AS code FROM condition_codes
)
SELECT d.hadm_id, x.use, x.condition, min(d.seq_num) = 1 AND count(*) = 1 AS principal
FROM mimic.diagnoses_icd d
JOIN prefix x ON starts_with(replace(trim(d.icd9_code), '.', ''), x.code)
GROUP BY ALL;
