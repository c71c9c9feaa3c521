-- Readings over the whole run so far: share of successful sampled executions, and the trailing mean of validation.
ALTER TABLE points ADD COLUMN training_success_total REAL;
ALTER TABLE points ADD COLUMN validation_smoothed REAL;
