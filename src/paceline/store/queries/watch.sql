-- name: blocked
select id from jobs where state = {blocked} and id > :after order by id limit :most

-- name: untold
select distinct edges.dependency from edges join jobs d on d.id = edges.dependency
 where edges.dependent {in:ids} and edges.met = 0 and d.state >= {first_ended}
   and not exists (select 1 from unsettled where unsettled.job = edges.dependency)
 order by edges.dependency
