-- name: by_ids
-- One line of a listing for each of the given jobs.
select jobs.id, jobs.state, lanes.class, lanes.priority, tenants.name, agents.name, jobs.epoch, jobs.attempt,
       jobs.node, jobs.ready_at, jobs.due_at, jobs.created_at, jobs.started_at, jobs.ended_at, jobs.reason,
       progress.fraction, progress.note, jobs.parent, jobs.root
  from jobs join lanes on lanes.id = jobs.lane join tenants on tenants.id = lanes.tenant
  join agents on agents.id = lanes.agent left join progress on progress.job = jobs.id
 where jobs.id {in:ids} order by jobs.id

-- name: newest
-- Walks back from the newest job: quick for what is common, a pass over the table for what is rare.
select id from jobs
 where id < :before and (cast(:states as text) is null or state {in:states}) and (cast(:lanes as text) is null or lane {in:lanes})
 order by id desc limit :most

-- name: dead
select id from jobs
 where id < :before and state in ({failed}, {timed_out}) and (cast(:lanes as text) is null or lane {in:lanes})
 order by id desc limit :most

-- name: running
select id from jobs
 where node is not null and (cast(:lanes as text) is null or lane {in:lanes}) and (cast(:states as text) is null or state {in:states})
 order by started_at, id limit :most

-- name: delayed
select id from jobs
 where state = {queued} and due_at is not null and (cast(:lanes as text) is null or lane {in:lanes}) order by due_at, id limit :most

-- name: blocked
select id from jobs where state = {blocked} and (cast(:lanes as text) is null or lane {in:lanes}) order by id limit :most

-- name: staged
select id from jobs
 where batch is not null and state = {created} and (cast(:lanes as text) is null or lane {in:lanes}) order by batch, id limit :most

-- name: lanes_of
select lanes.id from lanes join agents on agents.id = lanes.agent join tenants on tenants.id = lanes.tenant
 where (cast(:agent as text) is null or agents.name = :agent) and (cast(:tenant as text) is null or tenants.name = :tenant) order by lanes.id

-- name: ready_lanes
-- As far as `most` lanes that have a ready job: one index step for each, however many jobs are behind it.
with recursive found(lane, place) as (
  select min(lane), 1 from jobs where state = {queued} and due_at is null
  union all
  select (select min(lane) from jobs where state = {queued} and due_at is null and lane > found.lane), place + 1
    from found where found.lane is not null and place < :most
)
select lanes.id, lanes.class, lanes.priority, lanes.tenant, lanes.agent, lanes.home from found join lanes on lanes.id = found.lane

-- name: exists
select id from jobs where id = :id

-- name: between
select id from jobs where id between :low and :high order by id limit :most

-- name: nearest
select id from (select max(id) as id from jobs where id < :id union all select min(id) from jobs where id > :id) n
 where id is not null

-- name: meta
select value from meta where name = :name

-- name: set_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value

-- name: add_meta
insert into meta (name, value) values (:name, :value) on conflict (name) do nothing
