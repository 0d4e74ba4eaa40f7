-- name: columns
-- (table, column, type, place in the primary key or 0) of everything that is kept.
select m.name, c.name, lower(c.type), c.pk from sqlite_schema m join pragma_table_info(m.name) c
 where m.type = 'table' and m.name not like 'sqlite%' order by m.name, c.cid

-- name: columns (postgres)
select t.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0)
  from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  join pg_index i on i.indrelid = t.oid and i.indisprimary
 where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace order by t.relname, a.attnum

-- name: numbered
-- (table, column) whose numbers come from a counter beside the rows.
select name, name from sqlite_schema where 1 = 0

-- name: numbered (postgres)
select t.relname, a.attname from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attidentity <> ''
 where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace order by t.relname, a.attname

-- name: count_on
select :table, :column, :last

-- name: count_on (postgres)
select setval(pg_get_serial_sequence(:table, :column), :last)

-- name: patiently
-- Whoever touches everything once is in no hurry, and best served by whole tables.
select 1

-- name: patiently (postgres)
select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),
       set_config('work_mem', '64MB', true), set_config('plan_cache_mode', 'auto', true),
       set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
       set_config('enable_mergejoin', 'on', true)

-- name: forget_facts
delete from meta where name not in ('schema', 'clock') and name not like 'migration %'
