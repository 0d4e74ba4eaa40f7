-- name: after
select id, job, seq, at, kind, epoch, data from events
 where id > :after and id <= :upto and (:kinds is null or kind {in:kinds}) order by id limit :most

-- name: before
select id, job, seq, at, kind, epoch, data from events
 where id < :before and id > :after and (:kinds is null or kind {in:kinds}) order by id desc limit :most

-- name: one
select id, job, seq, at, kind, epoch, data from events where id = :id

-- name: at_or_behind
select id, at from events where id >= :id order by id limit 1
