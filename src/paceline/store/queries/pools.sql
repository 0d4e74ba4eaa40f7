-- name: seed
insert into pools (name, units) {values:p(name text, units int)} on conflict (name) do nothing

-- name: limits
select name, units from pools order by name

-- name: held
select pool, cast(sum(units) as bigint) from leases group by pool

-- name: take
insert into leases (job, pool, epoch, units) {values:l(job int, pool text, epoch int, units int)}

-- name: release
delete from leases where (job, epoch) in (select job, epoch from {rows:rows(job int, epoch int)} r)

-- name: holders
select job, units from leases where pool = :pool order by job
