-- name: prerequisites
-- What a job waits for, unmet ones first.
select edges.dependency, jobs.state, edges.wants, edges.met, jobs.session, agents.name, jobs.reason
  from edges join jobs on jobs.id = edges.dependency join lanes on lanes.id = jobs.lane
  join agents on agents.id = lanes.agent
 where edges.dependent = :job order by edges.met <> 0, edges.dependency limit :most

-- name: dependents
select edges.dependent, jobs.state, edges.wants, edges.met, jobs.session, agents.name, jobs.reason
  from edges join jobs on jobs.id = edges.dependent join lanes on lanes.id = jobs.lane
  join agents on agents.id = lanes.agent
 where edges.dependency = :job order by edges.dependent limit :most

-- name: count_edges
select (select count(*) from edges where dependent = :job), (select count(*) from edges where dependent = :job and met = 0),
       (select count(*) from edges where dependency = :job)

-- name: ahead
-- How many ready jobs stand before the given border of their lane.
select count(*) from (
  select 1 from {rows:rows(lane int, ready_at int, job int)} r join jobs j on j.lane = r.lane
     and j.state = {queued} and j.due_at is null and (j.ready_at, j.id) < (r.ready_at, r.job)
   limit :most) counted

-- name: agent_of_lane
select lanes.class, lanes.priority, lanes.tenant, agents.id, agents.name, agents.origin, agents.definition,
       agents.max_concurrency, lanes.home
  from lanes join agents on agents.id = lanes.agent where lanes.id = :lane

-- name: agent_holders
-- Jobs of an agent that hold a place, the longest running first.
select jobs.id, jobs.started_at, jobs.state from jobs
 where node is not null and lane in (select id from lanes where agent = :agent) order by started_at, id limit :most

-- name: pool_holders
select jobs.id, jobs.started_at, jobs.state from leases join jobs on jobs.id = leases.job
 where leases.pool = :pool order by started_at, jobs.id limit :most

-- name: held_by_agent
select lanes.agent, count(*) from jobs join lanes on lanes.id = jobs.lane where jobs.node is not null group by lanes.agent

-- name: served
-- Which agents the living nodes have code for.
select node_agents.node, node_agents.agent, agents.name, agents.origin
  from node_agents join nodes on nodes.id = node_agents.node and nodes.ended_at is null
  join agents on agents.id = node_agents.agent order by node_agents.node, node_agents.agent

-- name: node
select id, name, identity, version, slots, started_at, beat_at, expires_at, ended_at, ending, work_sharing from nodes where id = :id

-- name: accepted
select coalesce(published_at, 0) > 0 from batches where id = (select batch from jobs where id = :job)

-- name: names
-- The key a job was submitted under, and its session.
select (select key from keys where tenant = :tenant and agent = :agent and job = :job),
       (select name from sessions where id = (select session from jobs where id = :job))

-- name: bodies
select substr(inputs.body, 1, cast(:most as integer)), length(inputs.body), substr(results.body, 1, cast(:most as integer)), length(results.body)
  from jobs left join inputs on inputs.job = jobs.id left join results on results.job = jobs.id where jobs.id = :job
