<?php
// What a page of PHP does with its extensions: a database, texts of several bytes a character, documents, patterns. Prints
// the same every time. For workload_php and workload_apache.
$db = new PDO('sqlite::memory:');
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$db->exec('create table t (id integer primary key, name text, value real)');
$insert = $db->prepare('insert into t values (?, ?, ?)');
$db->beginTransaction();
for ($i = 0; $i < 5000; ++$i) $insert->execute([$i, 'name' . ($i * 7919 % 1009), $i / 4]);
$db->commit();
foreach ($db->query('select name, count(*) c, sum(value) s from t group by name order by c desc, name limit 10') as $row)
    echo "$row[name] $row[c] $row[s]\n";
try {
    $db->query('select nothing from nowhere');
} catch (PDOException $e) {
    echo $e->getMessage(), "\n";
}

$text = str_repeat('Zürich, Ærøskøbing, Москва, 東京, ', 500);
echo mb_strlen($text), ' ', md5(mb_strtoupper($text)), ' ', mb_substr($text, 10000, 20), "\n";
echo md5(mb_convert_encoding($text, 'UTF-16LE', 'UTF-8')), ' ', mb_detect_encoding($text, ['ASCII', 'UTF-8']), "\n";
echo iconv('UTF-8', 'ISO-8859-1//TRANSLIT//IGNORE', 'Zürich'), "\n";

$document = new DOMDocument();
$root = $document->appendChild($document->createElement('items'));
for ($i = 0; $i < 2000; ++$i) {
    $item = $root->appendChild($document->createElement('item', "text $i"));
    $item->setAttribute('number', (string)($i * 31 % 17));
}
$xml = $document->saveXML();
echo strlen($xml), ' ', md5($xml), "\n";
$path = new DOMXPath($document);
echo $path->query('//item[@number="5"]')->length, "\n";
$simple = simplexml_load_string($xml);
echo count($simple->item), ' ', $simple->item[77], "\n";
$reader = new XMLReader();
$reader->XML($xml);
for ($nodes = 0; $reader->read(); ++$nodes);
echo $nodes, "\n";
libxml_use_internal_errors(true);
var_dump(simplexml_load_string('<a><b></a>'));
echo count(libxml_get_errors()), "\n";

function numbers(int $to) {
    for ($i = 0; $i < $to; ++$i) yield "key$i" => ['value' => $i * 7919 % 10007, 'text' => str_repeat('x', $i % 50)];
}
$all = iterator_to_array(numbers(20000));
uasort($all, fn($a, $b) => [$a['value'], $a['text']] <=> [$b['value'], $b['text']]);
echo array_key_first($all), ' ', array_key_last($all), ' ', md5(serialize($all)), "\n";
$json = json_encode(array_values($all));
echo strlen($json), ' ', count(json_decode($json, true)), "\n";
echo preg_match_all('/"value":(\d+)7,/', $json, $found), ' ', md5(implode($found[1])), "\n";
echo md5(preg_replace_callback('/\d+/', fn($m) => strrev($m[0]), $json)), "\n";
echo strlen(gzcompress($json)) > 100 ? md5(gzuncompress(gzcompress($json))) : '', "\n";
echo (new DateTime('2024-02-29', new DateTimeZone('UTC')))->modify('+1 year')->format('c'), "\n";
echo hash('sha256', random_bytes(10)) !== '' ? 'done' : '', "\n";
