-- The descriptions of the simulated teacher by the update that used them, for the page of what was learned between two points of a
-- curve. Those of people have such an index already.
CREATE INDEX episodes_of_update ON episodes (run, update_no, episode) WHERE answer IS NOT NULL AND update_no IS NOT NULL;

-- Everything about a run's executions, which goes with the run when the trash is emptied.
CREATE INDEX executions_of_run ON executions (run);
