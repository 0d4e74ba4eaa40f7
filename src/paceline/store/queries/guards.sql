-- name: limits
select id from agents where id {in:ids} and max_concurrency is not null order by id {lock}

-- name: pools
select name from guards where name {in_text:names} order by name {lock}

-- name: add_pool
insert into guards (name) {values:g(name text)} on conflict (name) do nothing

-- name: rows
select id, state, lane, root, parent, session, epoch, attempt, crashes, timeouts, snoozes, retries, timeout, node,
       ready_at, due_at, deadline, created_at, started_at, ended_at, seq, last_event, reason
  from jobs where id {in:ids} order by id {share}

-- name: jobs
select id from jobs where id {in:ids} order by id {lock}

-- name: prerequisites
select id from jobs where id in (select dependency from edges where dependent {in:ids} and met = 0) order by id {share}

-- name: parents
select id from jobs where id in (select parent from jobs staged where staged.id {in:ids}) order by id {share}
