-- name: after
select {pos}, job, seq, at, kind, epoch, data from events
 where {pos} > :after and {pos} <= :upto and (cast(:kinds as text) is null or kind {in:kinds}) order by {pos} limit :most

-- name: before
select {pos}, job, seq, at, kind, epoch, data from events
 where {pos} < :before and {pos} > :after and (cast(:kinds as text) is null or kind {in:kinds}) order by {pos} desc limit :most

-- name: ended
-- The jobs that the newest stretch of the log saw end, the last one first.
select events.job from events join jobs on jobs.id = events.job and jobs.state >= {first_ended}
 where events.{pos} > :after and events.kind {in:kinds} and (cast(:lanes as text) is null or jobs.lane {in:lanes})
 order by events.{pos} desc limit :most

-- name: at_or_behind
select {pos}, at from events where {pos} >= :id order by {pos} limit 1
