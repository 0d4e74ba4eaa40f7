-- name: insert
insert into nodes (name, identity, version, slots, work_sharing, started_at, beat_at, expires_at)
values (:name, :identity, :version, :slots, :work_sharing, :now, :now, :expires_at) returning id

-- name: beat
update nodes set beat_at = :now, expires_at = :expires_at where id = :id and ended_at is null

-- name: end
update nodes set ended_at = :now, ending = :ending
 where id = :id and ended_at is null and expires_at <= coalesce(:expired_by, expires_at)

-- name: live
select id, name, identity, version, slots, started_at, beat_at, expires_at, ended_at, ending, work_sharing
  from nodes where ended_at is null order by id

-- name: rows
select id, name, identity, version, slots, started_at, beat_at, expires_at, ended_at, ending, work_sharing
  from nodes order by id desc limit :most

-- name: ended_holding
-- Ended nodes that still stand in jobs: their jobs have to be given back.
select id from nodes where id in (select distinct node from jobs where node is not null) and ended_at is not null

-- name: serve
insert into node_agents (node, agent) {values:s(node int, agent int)} on conflict (node, agent) do nothing

-- name: serving
select node_agents.node from node_agents join nodes on nodes.id = node_agents.node
 where node_agents.agent = :agent and nodes.ended_at is null

-- name: load
select node, count(*) from jobs where node is not null group by node
