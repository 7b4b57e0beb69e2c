-- What the measured sqlite3 reads after the statements that statements.sql has printed. Open it to change which
-- features are measured. Its output is the same in every run: nothing is drawn at random, and all that is printed is
-- ordered.
SELECT count(*), round(sum(amount), 2) FROM orders;
SELECT count(*), round(sum(amount), 2) FROM totals;

-- Joins, grouping, sorting, window functions
SELECT city, count(*), round(avg(amount), 3), group_concat(DISTINCT substr(day, 1, 4))
  FROM orders JOIN customers ON customers.id = orders.customer GROUP BY city ORDER BY city;
CREATE TEMP TABLE ranked AS
  SELECT customer, day, amount, rank() OVER (PARTITION BY customer ORDER BY amount DESC, day) AS place,
         sum(amount) OVER (PARTITION BY customer ORDER BY day, amount ROWS 5 PRECEDING) AS recent
    FROM orders;
SELECT place, count(*), round(max(recent), 2) FROM ranked GROUP BY place HAVING count(*) > 3000 ORDER BY place;
SELECT upper(note) || '/' || day AS text FROM orders ORDER BY substr(note, -9), text LIMIT 3;
SELECT count(DISTINCT note || amount), count(DISTINCT lower(note)) FROM orders;

-- JSON
SELECT json_extract(about, '$.born') / 10 * 10 AS decade, count(*), sum(json_extract(about, '$.size.x'))
  FROM customers GROUP BY decade ORDER BY decade;
SELECT tag.value, count(*) FROM customers, json_each(about, '$.tags') AS tag
  GROUP BY tag.value ORDER BY 2 DESC, 1 LIMIT 3;
SELECT city, length(json_group_array(json_object('name', name, 'about', json(about)))) FROM customers
  GROUP BY city ORDER BY city;
UPDATE customers SET about = json_set(about, '$.size.z', id % 10, '$.seen', json('true'));

-- Full-text search
CREATE VIRTUAL TABLE texts USING fts5(note, day UNINDEXED, prefix = '2 3');
INSERT INTO texts(rowid, note, day) SELECT id, note, day FROM orders;
SELECT count(*) FROM texts WHERE texts MATCH 'plums AND gift';
SELECT count(*) FROM texts WHERE texts MATCH '(pea* OR li*) NOT ship';
SELECT rowid, highlight(texts, 0, '[', ']') FROM texts WHERE texts MATCH '"figs of lot" AND hast*'
  ORDER BY bm25(texts), rowid LIMIT 3;
DELETE FROM texts WHERE rowid % 3 = 0;
INSERT INTO texts(texts) VALUES('optimize');

-- Indexes, updates, deletions
CREATE INDEX orders_by_note ON orders(note COLLATE NOCASE, amount);
CREATE INDEX customers_by_tag ON customers(json_extract(about, '$.tags[0]')) WHERE id % 2;
SELECT count(*) FROM orders WHERE note LIKE 'few  figs%';
UPDATE orders SET amount = amount * 1.05, note = replace(note, 'lot', 'batch')
  WHERE customer IN (SELECT id FROM customers WHERE city = 'Paris');
DELETE FROM orders WHERE day < '2021-01-01';
ANALYZE;
REINDEX;
PRAGMA integrity_check;
SELECT count(*), round(sum(amount), 2) FROM orders;
WITH RECURSIVE words(rest, word, depth) AS (
  SELECT group_concat(note, ' ') || ' ', '', 0 FROM (SELECT note FROM orders ORDER BY id LIMIT 400)
  UNION ALL SELECT substr(rest, instr(rest, ' ') + 1), substr(rest, 1, instr(rest, ' ') - 1), depth + 1
    FROM words WHERE rest <> ''
)
SELECT word, count(*) FROM words WHERE word GLOB '[a-z]*' GROUP BY word ORDER BY 2 DESC, 1 LIMIT 5;
