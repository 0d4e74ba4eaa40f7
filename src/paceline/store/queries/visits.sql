-- name: home
-- Which store this is: the same over every connection to it, and over none to another.
select ''

-- name: home (postgres)
select pg_postmaster_start_time() || ' ' || oid || ' ' || coalesce(to_regclass('jobs')::oid::text, 'none')
  from pg_database where datname = current_database()

-- name: may_write
select 1

-- name: may_write (postgres)
select case when current_setting('transaction_read_only') = 'off' and has_sequence_privilege('jobs_id_seq', 'usage')
   and not exists (select 1 from unnest(array['batches', 'jobs', 'inputs', 'edges', 'keys']) as t
                    where not has_table_privilege(t, 'insert') or not has_table_privilege(t, 'select')) then 1 else 0 end

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

-- name: left_open
-- Transactions that somebody began a while ago, where the database knows: while they last it can clear nothing away.
select '', 0, '', '', '', 0 where 1 = 0

-- name: left_open (postgres)
select 'transaction ' || pid || ' ' || (extract(epoch from xact_start) * 1000000)::bigint, pid::bigint,
       coalesce(usename::text, ''), coalesce(application_name, ''), coalesce(state, ''),
       extract(epoch from clock_timestamp() - xact_start)::bigint
  from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
   and xact_start < clock_timestamp() - make_interval(secs => :seconds)
union all
select 'transaction ' || gid, 0, owner::text, '', 'prepared', extract(epoch from clock_timestamp() - prepared)::bigint
  from pg_prepared_xacts
 where database = current_database() and prepared < clock_timestamp() - make_interval(secs => :seconds)

-- name: warn
insert into meta (name, value) values (:name, 'warned') on conflict (name) do nothing

-- name: forget_warnings
delete from meta where name like 'transaction %' and not name {in_text:names}
