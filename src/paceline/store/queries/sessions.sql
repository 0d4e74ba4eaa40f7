-- name: hand_on
-- Who waited in a session for a job that ended before its turn waits for the open one before that job.
insert into edges (dependency, dependent, wants, met)
select earlier.dependency, later.dependent, 1, 0
  from edges earlier
  join jobs ended on ended.id = earlier.dependent
  join jobs before on before.id = earlier.dependency and before.session = ended.session and before.state < {first_ended}
  join edges later on later.dependency = ended.id and later.met = 0
  join jobs behind on behind.id = later.dependent and behind.session = ended.session
 where earlier.dependent = :job and earlier.met = 0
on conflict (dependency, dependent) do nothing

-- name: open_before
-- What a job that ended before its turn still waited for in its session; it stays open until this transaction ends.
select edges.dependency from edges
  join jobs ended on ended.id = edges.dependent
  join jobs before on before.id = edges.dependency and before.session = ended.session and before.state < {first_ended}
 where edges.dependent = :job and edges.met = 0 order by edges.dependency {share:before}
