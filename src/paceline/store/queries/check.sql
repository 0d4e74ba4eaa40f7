-- name: last_event
-- A job's last event is the one its row names, with the row's number.
select jobs.id from jobs left join events on events.id = jobs.last_event
 where jobs.seq > 0 and (events.id is null or events.job <> jobs.id or events.seq <> jobs.seq) order by jobs.id

-- name: events_missing
select job from events where job is not null group by job having count(*) <> max(seq) - min(seq) + 1 order by job

-- name: events_unchained
-- Every event but a job's first names the one before it.
select distinct e.job from events e left join events p on p.id = e.prev
 where e.job is not null and e.seq > 1 and (e.prev is null or p.job <> e.job or p.seq <> e.seq - 1) order by e.job

-- name: node_missing
select id from jobs where node is not null and not exists (select 1 from nodes where nodes.id = jobs.node) order by id

-- name: node_dead
-- Between the end of a node and the return of its jobs, or until another node sees that it has died.
select jobs.id from jobs join nodes on nodes.id = jobs.node
 where nodes.ended_at is not null or nodes.expires_at < :now order by jobs.id

-- name: edges_untold
-- Open edges of jobs that have ended, and that nobody is going to settle.
select distinct edges.dependency from edges join jobs on jobs.id = edges.dependency
 where edges.met = 0 and jobs.state >= {first_ended}
   and not exists (select 1 from unsettled where unsettled.job = edges.dependency) order by edges.dependency

-- name: edges_dangling
select distinct dependent from edges
 where not exists (select 1 from jobs where jobs.id = edges.dependency)
    or not exists (select 1 from jobs where jobs.id = edges.dependent) order by dependent

-- name: blocked_by_nothing
select id from jobs where state = {blocked}
   and not exists (select 1 from edges where edges.dependent = jobs.id and edges.met = 0) order by id

-- name: started_too_early
select distinct jobs.id from jobs join edges on edges.dependent = jobs.id and edges.met <> 1
 where jobs.state in ({queued}, {running}, {waiting}, {completed}) order by jobs.id

-- name: never_ready
select id from jobs where state = {queued} and ready_at is null order by id

-- name: result_missing
select jobs.id from jobs left join results on results.job = jobs.id
 where jobs.state in ({completed}, {failed}) and results.job is null order by jobs.id

-- name: result_early
-- A job that has never ended has no result; one that was tried again keeps its last one.
select results.job from results left join jobs on jobs.id = results.job
 where jobs.id is null or (jobs.epoch = 0 and jobs.state < {first_ended}
       and not exists (select 1 from edges where edges.dependent = jobs.id)) order by results.job

-- name: input_missing
select id from jobs where not exists (select 1 from inputs where inputs.job = jobs.id) order by id

-- name: lane_missing
select jobs.id from jobs left join lanes on lanes.id = jobs.lane left join agents on agents.id = lanes.agent
  left join tenants on tenants.id = lanes.tenant
 where agents.id is null or tenants.id is null order by jobs.id

-- name: family_missing
select id from jobs j where not exists (select 1 from jobs r where r.id = j.root)
    or (parent is not null and not exists (select 1 from jobs p where p.id = j.parent)) order by id

-- name: staged_for_nobody
select id from jobs where state = {created} and (batch is null or not exists (select 1 from batches where batches.id = jobs.batch)) order by id

-- name: lease_of_nobody
-- Leases that no running code holds.
select leases.job from leases left join jobs on jobs.id = leases.job
 where jobs.id is null or jobs.epoch <> leases.epoch or jobs.node is null order by leases.job

-- name: key_dangling
select job from keys where not exists (select 1 from jobs where jobs.id = keys.job) order by job
