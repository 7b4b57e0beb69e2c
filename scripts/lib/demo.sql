-- The work that scripts/demo gives to sqlite3, all of it in memory: a shop's orders are made up, indexed, joined,
-- summed up and turned into text. The output depends on nothing but this file.
PRAGMA temp_store = MEMORY;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, product TEXT NOT NULL, cents INTEGER NOT NULL);

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO customer
SELECT i, printf('customer %05d %s', i, substr('abcdefghijklmnopqrstuvwxyz', i % 20 + 1, i % 7)),
       printf('city %d', i * 7919 % 250)
FROM n;

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO purchase
SELECT i, i * 48271 % 20000 + 1, printf('product-%d-%s', i * 69621 % 5000, hex(i)), i * 16807 % 9973
FROM n;

CREATE INDEX purchase_by_customer ON purchase(customer);
CREATE INDEX purchase_by_product ON purchase(product);
CREATE INDEX customer_by_city ON customer(city, name);

SELECT 'purchases', count(*), sum(cents), count(DISTINCT product) FROM purchase;

SELECT 'best city', city, count(*), sum(cents) AS total
FROM customer JOIN purchase ON purchase.customer = customer.id
GROUP BY city ORDER BY total DESC, city LIMIT 3;

SELECT 'longest list', customer.name, length(group_concat(replace(upper(product), 'PRODUCT', 'P'), ', ')) AS size
FROM customer JOIN purchase ON purchase.customer = customer.id
GROUP BY customer.id ORDER BY size DESC, customer.id LIMIT 3;

SELECT 'words', word, count(*) AS times
FROM (SELECT substr(name, 1, instr(name || ' ', ' ') - 1) || substr(city, 6, 1) AS word FROM customer)
GROUP BY word ORDER BY times DESC, word LIMIT 3;

SELECT 'as JSON', length(json_group_array(json_object('id', id, 'product', product, 'cents', cents))) FROM purchase;

UPDATE purchase SET product = lower(product) || '/' || (SELECT city FROM customer WHERE id = purchase.customer);
DELETE FROM purchase WHERE cents % 3 = 0;

SELECT 'left', count(*), sum(length(product)), min(product), max(product) FROM purchase;
SELECT 'running total', max(running) FROM
  (SELECT sum(cents) OVER (PARTITION BY customer ORDER BY product) AS running FROM purchase);
PRAGMA integrity_check;
