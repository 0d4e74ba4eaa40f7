-- name: lead
select node, term, expires_at from leaders where name = :name

-- name: begin
insert into leaders (name, node, term, expires_at) values (:name, :node, :term, :expires_at)
on conflict (name) do nothing

-- name: go_on
-- Nobody has renewed or taken it since it was read; nobody waits for one who is just leading.
update leaders set node = :node, term = :term, expires_at = :expires_at
 where name in (select name from leaders
                 where name = :name and node = :held_node and term = :held_term and expires_at = :held_until
                       {skip_locked:leaders})
