-- name: insert
insert into edges (dependency, dependent, wants, met) {values:e(dependency int, dependent int, wants int, met int)}
on conflict (dependency, dependent) do nothing

-- name: open_from
-- Edges of ended jobs that nobody has settled yet.
select dependency, dependent, wants, met from edges where dependency {in:ids} and met = 0 limit :most

-- name: settle
update edges set met = r.met from {rows:rows(dependency int, dependent int, met int)} r
 where edges.dependency = r.dependency and edges.dependent = r.dependent and edges.met = 0

-- name: freed
-- Those of the given blocked jobs that wait for nothing any more.
select id, epoch, due_at from jobs where id {in:ids} and state = {blocked}
   and not exists (select 1 from edges where edges.dependent = jobs.id and edges.met = 0)
 order by id

-- name: broken
-- Those of the given blocked jobs that have a prerequisite which ended otherwise than the edge asked.
select edges.dependent, min(edges.dependency) from edges
 where edges.dependent {in:ids} and edges.met = 2 group by edges.dependent

-- name: of_dependent
select dependency, dependent, wants, met from edges where dependent = :job order by dependency

-- name: broken_behind
select dependency, dependent, wants, met from edges where dependency {in:ids} and met = 2
 order by dependency, dependent limit :most

-- name: reopen
update edges set met = 0 from {rows:rows(dependency int, dependent int)} r
 where edges.dependency = r.dependency and edges.dependent = r.dependent and edges.met = 2

-- name: postpone
insert into unsettled (job) {values:u(job int)} on conflict (job) do nothing

-- name: postponed
select job from unsettled order by job limit :most {skip_locked:unsettled}

-- name: settled
delete from unsettled where job {in:ids}
