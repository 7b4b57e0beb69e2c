-- Questions about documents, which the load asks now and then: JSON, full-text search, regular expressions, a loop in
-- PL/pgSQL. Open it with load.sh.
\set tag random(1, 16)
\set first random(1, 2500)
SELECT about #>> '{size,pages}', jsonb_agg(about || jsonb_build_object('body', upper(body)) ORDER BY id)
  FROM documents WHERE about @> jsonb_build_object('tags', jsonb_build_array('t' || :tag)) GROUP BY 1 ORDER BY 1;
SELECT id, ts_headline('simple', body, query), ts_rank(to_tsvector('simple', body), query)
  FROM documents, to_tsquery('simple', 'page & (blue | black) & ' || :first) AS query
  WHERE to_tsvector('simple', body) @@ query ORDER BY 3 DESC, 1 LIMIT 20;
SELECT array_agg(found[1] || regexp_replace(body, '(\w+) page (\d+)', '\2-\1', 'g') ORDER BY id)
  FROM documents, regexp_matches(body, '([a-f]{2,}[0-9]+)') AS found WHERE id BETWEEN :first AND :first + 300;
DO $$
DECLARE
  each record;
  texts text[] := '{}';
BEGIN
  FOR each IN SELECT id, body FROM documents ORDER BY id LIMIT 400 LOOP
    texts := texts || (substr(each.body, 1, 20) || each.id);
  END LOOP;
END $$;
