-- name: agent
select id, definition, max_concurrency from agents where name = :name and origin = :origin

-- name: add_agent
insert into agents (name, origin, definition, max_concurrency) values (:name, :origin, :definition, :max_concurrency)
on conflict (name, origin) do update set definition = excluded.definition, max_concurrency = excluded.max_concurrency
returning id

-- name: agents
select id, name, origin, definition, max_concurrency from agents order by name, origin

-- name: agents_named
select id, name, origin, definition, max_concurrency from agents where name = :name order by origin

-- name: tenant
select id from tenants where name = :name

-- name: add_tenant
-- Somebody else may have named it meanwhile; then it has that number.
insert into tenants (name) values (:name) on conflict (name) do update set name = excluded.name returning id

-- name: lane
select id from lanes where class = :class and priority = :priority and tenant = :tenant and agent = :agent
   and home = :home

-- name: add_lane
insert into lanes (class, priority, tenant, agent, home) values (:class, :priority, :tenant, :agent, :home)
on conflict (class, priority, tenant, agent, home) do update set agent = excluded.agent returning id

-- name: lanes
select id, class, priority, tenant, agent, home from lanes where id {in:ids}

-- name: ready_lanes
-- Skip-scan: one index step per lane that has a ready job, however many jobs are behind it.
with recursive found(lane) as (
  select min(lane) from jobs where state = {queued} and due_at is null
  union all
  select (select min(lane) from jobs where state = {queued} and due_at is null and lane > found.lane)
    from found where found.lane is not null
)
select lane from found where lane is not null

-- name: ready
-- Those of the given jobs that are ready.
select lane, ready_at, id from jobs where id {in:ids} and +state = {queued} and due_at is null

-- name: heads
-- The first jobs of each lane, behind the last one known of it.
select r.lane, jobs.ready_at, jobs.id
  from {rows:rows(lane int, ready_at int, job int)} r
  join jobs on jobs.id in (
    select j.id from jobs j
     where j.lane = r.lane and j.state = {queued} and j.due_at is null and (j.ready_at, j.id) > (r.ready_at, r.job)
     order by j.ready_at, j.id limit :most)
 order by r.lane, jobs.ready_at, jobs.id

-- name: heads (postgres)
select r.lane, head.ready_at, head.id
  from {rows:rows(lane int, ready_at int, job int)} r
 cross join lateral (
    select j.ready_at, j.id from jobs j
     where j.lane = r.lane and j.state = {queued} and j.due_at is null and (j.ready_at, j.id) > (r.ready_at, r.job)
     order by j.ready_at, j.id limit :most) head
 order by r.lane, head.ready_at, head.id

-- name: head
select ready_at, id from jobs
 where lane = :lane and state = {queued} and due_at is null and (ready_at, id) > (:ready_at, :job)
 order by ready_at, id limit :most
