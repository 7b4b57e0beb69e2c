-- Prints the statements that the measured sqlite3 begins with: a schema, and one INSERT for each of 40,000 rows, as a
-- dump has them. Open it to change the data that queries.sql works on.
SELECT 'CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, city TEXT, about TEXT);';
SELECT 'CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER, day TEXT, amount REAL, note TEXT);';
SELECT 'CREATE INDEX orders_by_customer ON orders(customer, day);';
SELECT 'CREATE TABLE totals(customer INTEGER PRIMARY KEY, orders INTEGER, amount REAL);';
SELECT 'CREATE TRIGGER add_to_total AFTER INSERT ON orders BEGIN
  INSERT INTO totals VALUES(new.customer, 1, new.amount)
    ON CONFLICT(customer) DO UPDATE SET orders = orders + 1, amount = amount + excluded.amount;
END;';
SELECT 'BEGIN;';
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
SELECT printf('INSERT INTO customers VALUES(%d, ''%s %s'', ''%s'', ' ||
              '''{"born":%d,"tags":["t%d","t%d"],"size":{"x":%d,"y":%d}}'');',
              i, substr('AnnBobEvaIdaJanKimLeaMaxNedOlaPiaRoySamTedUteZoe', 1 + 3 * (i * 7 % 16), 3),
              printf('Name%04d', i * 7919 % 4000),
              substr('Oslo  Rome  Lima  Paris Cairo Delhi Quito Tokyo', 1 + 6 * (i * 5 % 8), 5),
              1950 + i * 31 % 60, i * 13 % 50, i * 17 % 50, i * 101 % 997, i * 103 % 991)
  FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 36000)
SELECT printf('INSERT INTO orders VALUES(%d, %d, date(''2020-01-01'', ''+%d days''), %d.%02d, ' ||
              '''%s %s of lot %d, %s'');',
              i, 1 + i * 7907 % 4000, i * 37 % 1400, i * 53 % 900, i * 59 % 100,
              substr('ten  two  some many few  all  half one', 1 + 5 * (i * 11 % 8), 4),
              substr('apples pears  plums  grapes figs   dates  lemons limes', 1 + 7 * (i * 3 % 8), 6), i * 61 % 5000,
              substr('by ship as a gift on credit in haste returned', 1 + i * 19 % 30, 14))
  FROM n;
SELECT 'COMMIT;';
