-- Sizes of the pool are read several times a second, and must not cost more with the executions that wait.

CREATE INDEX executions_fresh ON executions (run) WHERE state = 'open' AND touched = 0;
CREATE INDEX leases_live ON leases (expires_at);
