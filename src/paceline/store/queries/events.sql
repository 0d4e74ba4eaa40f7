-- name: last
select coalesce(max({pos}), 0) from events

-- name: lock_end
-- Where several transactions write at once, one at a time puts its events at the end of the log.
{lock_log}

-- name: insert
insert into events (id, job, seq, prev, at, kind, epoch, data)
{values:e(id int, job int, seq int, prev int, at int, kind int, epoch int, data text)}

-- name: gained
-- The change feed of dispatchers: jobs that became ready or were taken in a stretch of the log, as they are now.
select jobs.lane, jobs.ready_at, jobs.id, case when jobs.state = {queued} and jobs.due_at is null then 1 else 0 end
  from events join jobs on jobs.id = events.job
 where events.{pos} > :after and events.{pos} <= :upto and events.kind {in:kinds}

-- name: after
select {pos}, job, seq, at, kind, epoch, data from events where {pos} > :after order by {pos} limit :most

-- name: of_job
-- Walks the chain back from the job's last event, no further than asked: no index by job is kept.
with recursive chain(id, prev, job, seq, at, kind, epoch, data, place) as (
  select e.{pos}, e.prev, e.job, e.seq, e.at, e.kind, e.epoch, e.data, 1
    from jobs join events e on e.id = jobs.last_event where jobs.id = :job and e.{pos} > :after
  union all
  select e.{pos}, e.prev, e.job, e.seq, e.at, e.kind, e.epoch, e.data, place + 1
    from chain join events e on e.id = chain.prev where e.{pos} > :after and place < :most
)
select id, job, seq, at, kind, epoch, data from chain order by seq desc
