-- A walk along a graph, which the load makes now and then: a recursive query, and one whose plan has many parts.
-- Open it with load.sh.
\set start random(1, 400)
WITH RECURSIVE reached (product, depth, path) AS (
  SELECT :start, 0, ARRAY[:start]
  UNION ALL
  SELECT (product * 3 + step) % 500 + 1, depth + 1, path || (product * 3 + step) % 500 + 1
    FROM reached, generate_series(0, 2) AS step WHERE depth < 6
)
SELECT depth, count(DISTINCT product), max(array_length(path, 1)), md5(string_agg(path::text, ';' ORDER BY path::text))
  FROM reached GROUP BY depth ORDER BY depth;
SELECT a.name, b.name, c.name, count(*), max(p.day)
  FROM orders AS p JOIN orders AS q ON q.customer = p.customer AND q.day > p.day
  JOIN orders AS r ON r.customer = q.customer AND r.day > q.day
  JOIN products AS a ON a.id = p.product JOIN products AS b ON b.id = q.product JOIN products AS c ON c.id = r.product
  WHERE p.customer = :start AND a.kind <> b.kind
    AND c.price > ALL (SELECT price / 2 FROM products WHERE kind = a.kind AND id < 90)
  GROUP BY 1, 2, 3 ORDER BY 5 DESC, 1, 2, 3 LIMIT 10;
