-- The spine: jobs with their bodies, edges, events, lanes, nodes, pools and leases.
create table meta (name text primary key, value text not null);

create table agents (
  id {numbered},
  name text not null,
  origin text not null,
  definition text not null,
  max_concurrency integer,
  unique (name, origin)
);
create table tenants (id {numbered}, name text not null unique);
create table lanes (
  id {numbered},
  class integer not null,
  priority integer not null,
  tenant integer not null,
  agent integer not null,
  home integer not null default 0,
  unique (class, priority, tenant, agent, home)
);
create table sessions (
  id {numbered},
  tenant integer not null,
  name text not null,
  last_job integer,
  unique (tenant, name)
);

-- Bodies live in tables of their own: every change of state rewrites the whole job row.
create table jobs (
  id {numbered},
  state integer not null check (state in ({states})),
  lane integer not null,
  root integer not null,
  parent integer,
  session integer,
  batch integer,
  epoch integer not null default 0,
  attempt integer not null default 0,
  crashes integer not null default 0,
  timeouts integer not null default 0,
  snoozes integer not null default 0,
  retries integer not null default 0,
  timeout integer not null,
  node integer,
  ready_at integer,
  due_at integer,
  deadline integer,
  created_at integer not null,
  started_at integer,
  ended_at integer,
  seq integer not null default 0,
  last_event integer,
  prev_event integer,
  reason text,
  check ((state >= {first_ended}) = (ended_at is not null)),
  check (state <> {running} or node is not null)
);
create table inputs (job integer primary key, body text not null);
create table results (job integer primary key, body text not null);
create table progress (job integer primary key, fraction real, note text);

create index jobs_ready on jobs (lane, ready_at, id) where state = {queued} and due_at is null;
create index jobs_due on jobs (due_at) where state = {queued} and due_at is not null;
create index jobs_blocked on jobs (id) where state = {blocked};
create index jobs_staged on jobs (batch, id) where batch is not null;
create index jobs_holding on jobs (node, lane, root) where node is not null;
create index jobs_stopping on jobs (node, id) where node is not null and state >= {first_ended};
create index jobs_deadline on jobs (deadline) where deadline is not null and state < {first_ended};
create index jobs_children on jobs (parent) where parent is not null;
create index jobs_dead on jobs (id) where state in ({failed}, {timed_out});

create table edges (
  dependency integer not null,
  dependent integer not null,
  wants integer not null,
  met integer not null default 0,
  primary key (dependency, dependent)
){without_rowid};
create index edges_unmet on edges (dependent) where met = 0;
create index edges_dependent on edges (dependent, dependency);

-- Jobs that ended with more dependents than one unit of work may touch; drained in small units.
create table unsettled (job integer primary key);

create table keys (
  tenant integer not null,
  agent integer not null,
  key text not null,
  job integer not null,
  primary key (tenant, agent, key)
){without_rowid};

create table batches (id integer primary key, opened_at integer not null, published_at integer);

create table events (
  id integer primary key,{position}
  job integer,
  seq integer not null,
  prev integer,
  at integer not null,
  kind integer not null,
  epoch integer not null,
  data text
);

create table nodes (
  id {numbered},
  name text not null,
  identity text not null,
  version text not null,
  slots integer not null,
  work_sharing integer not null default 1,
  started_at integer not null,
  beat_at integer not null,
  expires_at integer not null,
  aside_until integer not null default 0,
  ended_at integer,
  ending text
);
create index nodes_live on nodes (id) where ended_at is null;
create table node_agents (
  node integer not null,
  agent integer not null,
  primary key (node, agent)
){without_rowid};
-- What one node does for all: who does it, in which term and until when.
create table leaders (
  name text primary key,
  node integer not null,
  term integer not null,
  expires_at integer not null
){without_rowid};

create table pools (name text primary key, units integer not null check (units >= 0));
-- One row for each pool that somebody has ever counted: who counts it holds the row.
create table guards (name text primary key);
create table leases (
  job integer not null,
  pool text not null,
  epoch integer not null,
  units integer not null check (units > 0),
  primary key (job, pool)
){without_rowid};
create index leases_pool on leases (pool, units);
{own_tables}
