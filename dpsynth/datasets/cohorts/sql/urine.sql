-- Urine in mL: every charted volume of the window, and the sum. Irrigation that went in is taken off.
CREATE TABLE urine_charted AS
SELECT c.icustay_id, o.charttime, sum((o.value * i.factor)::DECIMAL(18, 4)) AS volume
FROM mimic.outputevents o
JOIN item i ON i.source = 'outputevents' AND i.itemid = o.itemid
JOIN cohort c ON c.icustay_id = o.icustay_id AND o.charttime BETWEEN c.window_start AND c.prediction_time
JOIN item_limit x ON x.concept = 'urine'
WHERE coalesce(o.iserror, 0) <> 1 AND o.value BETWEEN x.low AND x.high
GROUP BY ALL;

CREATE TABLE urine AS
SELECT icustay_id, greatest(sum(volume), 0)::DOUBLE AS volume FROM urine_charted GROUP BY ALL;
