-- Ventilation and dialysis: signs of them on the chart, and procedures of MetaVision that had begun by the
-- prediction time and not ended before the window. "Rewritten" rows were replaced by others.
CREATE TABLE support AS
SELECT icustay_id, concept, charttime AS begun, charttime AS ended
FROM chart WHERE concept IN ('ventilator', 'dialysis')
UNION ALL
SELECT c.icustay_id, i.concept, greatest(p.starttime, c.window_start), least(p.endtime, c.prediction_time)
FROM mimic.procedureevents_mv p
JOIN item i ON i.source = 'procedureevents_mv' AND i.itemid = p.itemid
JOIN cohort c
    ON c.icustay_id = p.icustay_id AND p.starttime <= c.prediction_time AND p.endtime >= c.window_start
WHERE coalesce(p.statusdescription, '') <> 'Rewritten';
