-- name: look
select ended_at is null, (select coalesce(sum(slots), 0) from nodes others where others.ended_at is null and others.id <> nodes.id),
       (select coalesce(max({pos}), 0) from events), (select min(due_at) from jobs where state = {queued} and due_at is not null)
  from nodes where id = :id {share:nodes}

-- name: free
select id, slots - (select count(*) from jobs where jobs.node = nodes.id)
  from nodes
 where ended_at is null and expires_at > :now and (aside_until <= :now or id = :node)
   and (work_sharing = 1 or :for_anybody = 1 or id = :node)
   and exists (select 1 from node_agents where node_agents.node = nodes.id and node_agents.agent {in:agents})

-- name: stand_aside
update nodes set aside_until = :until where id = :id and ended_at is null
