-- Questions that PostgreSQL answers with parallel workers: aggregates, joins, sorts, an index built by several. Open it
-- with workload_postgresql of real_workloads_servers.sh.
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET max_parallel_workers_per_gather = 3;
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;

SELECT sum(abalance), count(*), max(length(filler)) FROM pgbench_accounts;
SELECT sum(bbalance) = (SELECT sum(delta) FROM pgbench_history) FROM pgbench_branches;
SELECT sum(tbalance), count(*) FROM pgbench_tellers;
SELECT count(*), sum(delta) FROM pgbench_history;
SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid DESC)) FROM pgbench_accounts WHERE aid % 7 = 3;
SELECT kind, count(*), sum(pieces), round(sum(price * pieces)::numeric, 2), count(DISTINCT customer)
  FROM orders JOIN products ON products.id = product GROUP BY kind ORDER BY kind;
SELECT a.aid % 10, count(*), sum(o.pieces), max(md5(a.aid::text))
  FROM pgbench_accounts AS a JOIN orders AS o ON a.aid % 900 = o.customer WHERE a.aid < 2000 GROUP BY 1 ORDER BY 1;
CREATE INDEX ON pgbench_accounts (md5(aid::text));
SELECT aid FROM pgbench_accounts ORDER BY md5(aid::text) LIMIT 5;
SELECT id, about #>> '{size,pages}', ts_rank(to_tsvector('simple', body), to_tsquery('simple', 'page & blue')) > 0
  FROM documents WHERE to_tsvector('simple', body) @@ to_tsquery('simple', 'page & blue') ORDER BY md5(body) LIMIT 10;
