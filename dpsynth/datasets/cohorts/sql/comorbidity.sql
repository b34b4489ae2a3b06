-- Comorbidity indices with the ICD-9-CM codes of Quan et al. (Med Care 2005;43:1130-1139). Elixhauser with the
-- weights of van Walraven et al. (Med Care 2009;47:626-633); Charlson with those of Charlson et al. (J Chronic
-- Dis 1987;40:373-383). Within a family (mild and severe liver disease) the heaviest condition counts.
-- Codes are given at discharge. So of this admission only what is a lasting disease counts, and not the
-- reason for the admission; conditions that can arise in hospital (needs_earlier: those for which the HCUP
-- Elixhauser Comorbidity Software Refined wants a "present on admission" mark, which MIMIC-III lacks) count
-- only if an admission that had ended before this one has the code.
CREATE TABLE comorbidity AS
WITH coded AS (
    SELECT c.icustay_id, d.use, d.condition, true AS earlier
    FROM cohort c
    JOIN mimic.admissions a ON a.subject_id = c.subject_id AND a.dischtime <= c.admittime
    JOIN diagnosis d ON d.hadm_id = a.hadm_id
    UNION ALL
    SELECT c.icustay_id, d.use, d.condition, false
    FROM cohort c JOIN diagnosis d ON d.hadm_id = c.hadm_id
    WHERE NOT d.principal
),
heaviest AS (
    SELECT icustay_id, use, family, max(weight) AS weight
    FROM coded JOIN condition_codes k USING (use, condition)
    WHERE k.weight IS NOT NULL AND (coded.earlier OR NOT k.needs_earlier)
    GROUP BY ALL
)
SELECT
    c.icustay_id,
    coalesce(sum(h.weight) FILTER (h.use = 'elixhauser'), 0)::INTEGER AS elixhauser,
    coalesce(sum(h.weight) FILTER (h.use = 'charlson'), 0)::INTEGER AS charlson
FROM cohort c LEFT JOIN heaviest h USING (icustay_id)
GROUP BY ALL;
