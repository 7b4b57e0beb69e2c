-- What the measured server holds beside the tables of pgbench: products, orders of them, and documents. Open it to
-- change what report.sql, documents.sql and paths.sql work on.
CREATE TABLE products AS
  SELECT i AS id, 'product ' || i AS name, (i * 37 % 11)::int AS kind, (i * 7919 % 100000) / 100.0 AS price
    FROM generate_series(1, 500) AS i;
ALTER TABLE products ADD PRIMARY KEY (id);

CREATE TABLE orders AS
  SELECT i AS id, 1 + i * 7907 % 500 AS product, 1 + i * 31 % 900 AS customer, 1 + i % 7 AS pieces,
         date '2024-01-01' + i * 13 % 365 AS day
    FROM generate_series(1, 20000) AS i;
ALTER TABLE orders ADD PRIMARY KEY (id);
CREATE INDEX orders_by_customer ON orders (customer, day);

CREATE TABLE documents AS
  SELECT i AS id, jsonb_build_object('title', 'Document ' || i, 'tags', jsonb_build_array('t' || i % 17, 't' || i % 23),
           'size', jsonb_build_object('pages', i % 300, 'words', i * 97 % 5000)) AS about,
         repeat('the ' || (ARRAY['red', 'green', 'blue', 'white', 'black'])[1 + i % 5] || ' page ' || i || ' tells of '
                       || md5(i::text) || '. ', 3) AS body
    FROM generate_series(1, 3000) AS i;
ALTER TABLE documents ADD PRIMARY KEY (id);
CREATE INDEX documents_by_about ON documents USING gin (about jsonb_path_ops);
CREATE INDEX documents_by_word ON documents USING gin (to_tsvector('simple', body));
VACUUM ANALYZE;
