-- name: after
select id, job, seq, at, kind, epoch, data from events
 where id > :after and id <= :upto and (:kinds is null or kind {in:kinds}) order by id limit :most

-- name: before
select id, job, seq, at, kind, epoch, data from events
 where id < :before and id > :after and (:kinds is null or kind {in:kinds}) order by id desc limit :most

-- name: ended
-- The jobs that the newest stretch of the log saw end, the last one first.
select events.job from events join jobs on jobs.id = events.job and jobs.state >= {first_ended}
 where events.id > :after and events.kind {in:kinds} and (:lanes is null or jobs.lane {in:lanes})
 order by events.id desc limit :most

-- name: one
select id, job, seq, at, kind, epoch, data from events where id = :id

-- name: at_or_behind
select id, at from events where id >= :id order by id limit 1
