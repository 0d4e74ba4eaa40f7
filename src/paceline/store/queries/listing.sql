-- name: job_line
-- The front part of every listing of jobs.
select jobs.id, jobs.state, lanes.class, lanes.priority, tenants.name, agents.name, jobs.epoch, jobs.attempt,
       jobs.node, jobs.ready_at, jobs.due_at, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.reason,
       progress.fraction, progress.note, jobs.parent, jobs.root
  from jobs join lanes on lanes.id = jobs.lane join tenants on tenants.id = lanes.tenant
  join agents on agents.id = lanes.agent left join progress on progress.job = jobs.id

-- name: jobs
{job_line}
 where jobs.id < :before and (:state is null or jobs.state = :state)
   and (:agent is null or agents.name = :agent) and (:tenant is null or tenants.name = :tenant)
 order by jobs.id desc limit :most

-- name: dead
{job_line}
 where jobs.id < :before and jobs.state in ({failed}, {timed_out})
   and (:agent is null or agents.name = :agent) and (:tenant is null or tenants.name = :tenant)
 order by jobs.id desc limit :most

-- name: by_ids
{job_line}
 where jobs.id {in:ids} order by jobs.id

-- name: running
{job_line}
 where jobs.node is not null and (:agent is null or agents.name = :agent) order by jobs.id limit :most

-- name: exists
select id from jobs where id = :id

-- name: between
select id from jobs where id between :low and :high order by id limit :most

-- name: ahead
-- How many ready jobs of its lane stand before a job.
select count(*) from jobs j where j.lane = :lane and j.state = {queued} and j.due_at is null
   and (j.ready_at, j.id) < (:ready_at, :job)

-- name: meta
select value from meta where name = :name

-- name: set_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value

-- name: add_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do nothing
