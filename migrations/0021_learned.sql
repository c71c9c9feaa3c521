-- The descriptions of the simulated teacher by the update that used them, for the page of what was learned between two points of a
-- curve. Those of people have such an index already.
CREATE INDEX episodes_of_update ON episodes (run, update_no, episode) WHERE answer IS NOT NULL AND update_no IS NOT NULL;
