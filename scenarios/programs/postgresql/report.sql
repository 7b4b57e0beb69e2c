-- A report, which the load runs now and then: joins, grouping sets, window functions and sorts.
-- Open it with load.sh.
\set first random(1, 300)
SELECT kind, grouping(kind, day), count(*), sum(pieces * price), string_agg(DISTINCT name, ',' ORDER BY name)
  FROM orders JOIN products ON products.id = product
  WHERE customer BETWEEN :first AND :first + 120
  GROUP BY GROUPING SETS ((kind), (day), ())
  ORDER BY 1, 2, 3, 4;
SELECT customer, day, sum(pieces) OVER (PARTITION BY customer ORDER BY day, orders.id),
       rank() OVER (ORDER BY pieces * price DESC, orders.id)
  FROM orders JOIN products ON products.id = product
  WHERE customer BETWEEN :first AND :first + 60
  ORDER BY 4 LIMIT 50;
