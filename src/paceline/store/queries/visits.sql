-- name: home
-- Which store this is: the same over every connection to it, and over none to another.
select ''

-- name: home (postgres)
select pg_postmaster_start_time() || ' ' || oid || ' ' || coalesce(to_regclass('jobs')::oid::text, 'none')
  from pg_database where datname = current_database()

-- name: key_is_free
select 1

-- name: key_is_free (postgres)
select case when pg_try_advisory_xact_lock_shared(
  hashtextextended(concat_ws(' ', :tenant::bigint, :agent::bigint, :key::text), 'keys'::regclass::oid::bigint))
  then 1 else 0 end

-- name: hold_key
select 1

-- name: hold_key (postgres)
select case when pg_try_advisory_xact_lock(
  hashtextextended(concat_ws(' ', :tenant::bigint, :agent::bigint, :key::text), 'keys'::regclass::oid::bigint))
  then 1 else 0 end

-- name: open
insert into batches (id, opened_at, published_at) values (:id, :now, :now)

-- name: committed
select id from batches where id < 0 order by id limit :most {skip_locked:batches}

-- name: staged
select id from jobs where batch {in:batches} and state = {created} order by id limit :most

-- name: close
delete from batches where id {in:batches}

-- name: overlooked
select edges.dependency, edges.dependent, edges.wants, edges.met, d.state
  from edges join jobs d on d.id = edges.dependency
 where edges.dependent {in:ids} and edges.met = 0 and d.state >= {first_ended}
