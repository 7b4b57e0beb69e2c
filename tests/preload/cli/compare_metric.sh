#!/usr/bin/env bash
# `sluice compare --metric`: the verdict, the order and the summary follow the user's own figure, in every report. The
# figures here are made up, so that no verdict depends on time.
. "$(dirname "$0")/testing.sh"
python=$(command -v python3) || skip 'no python3'

# The load prints what the service has put down: twice the rate under sluice, where the load takes longer, too.
cat >service <<'END'
case $LD_PRELOAD in *libsluice.so*) rate=2000 p99=9 pause=0.06 ;; *) rate=1000 p99=5 pause=0 ;; esac
echo "Requests/sec:   $rate.00, p99=$p99.5 ms, points $rate" >figures.new
echo "$pause" >pause
mv figures.new figures
exec sleep 4751
END
load='sleep $(cat pause); cat figures; rm figures'
serve() { run "$SLUICE" compare --warmup 0 --with system,sluice --ready 'test -s figures' --load "$load" "$@" -- sh service; }

serve --runs 5 --metric 'Requests/sec: *([0-9.]+)' --json rate.json --markdown rate.md --html rate.html
expect_status 0
expect_in output 'Best by Requests/sec: sluice, then system.'
expect_in output '2.0 times higher, better'
case "$output" in *Fastest*) fail "it ranks by time beside the figure asked for: $output" ;; esac
case "$(sed -n 4p <<<"$output")" in *'Requests/sec'*'load, ms'*) ;; *) fail "the figure is not the first column: $output" ;; esac
grep -q 'Best by Requests/sec: sluice, then system.' rate.md || fail "the Markdown file: $(cat rate.md)"
grep -q 'load_figure' rate.html || fail 'the page does not hold the figure'
"$python" - <<'END' || fail "the JSON file"
import json
document = json.load(open("rate.json"))
metric = document["metrics"][0]
assert metric == {"name": "load_figure", "title": "Requests/sec", "better": "more", "decides": True,
                  "expression": "Requests/sec: *([0-9.]+)"}, metric
assert [each["decides"] for each in document["metrics"][1:]] == [False] * (len(document["metrics"]) - 1)
assert document["summary"][0] == "Best by Requests/sec: sluice, then system.", document["summary"]
system, sluice = (each["metrics"]["load_figure"] for each in document["allocators"])
assert (system["place"], system["best"]) == (2, False) and (sluice["place"], sluice["best"]) == (1, True)
assert sluice["verdict"] == "more" and sluice["samples"] == [2000] * 5, sluice
END

# Several: the first that has a direction decides; each is told. What is printed may be the unit, or it is said.
serve --runs 5 --metric 'p99=([0-9.]+)' --metric 'sec: *([0-9.]+)' --json several.json
expect_status 0
[ "$(grep -o 'Best by [a-z0-9]*: [a-z]*' <<<"$output" | tr '\n' ' ')" = 'Best by p99: system Best by sec: sluice ' ] ||
  fail "two figures: $output"
expect_in output '72.7 % higher, worse'
"$python" -c 'import json; d = json.load(open("several.json"))
assert [m["name"] for m in d["metrics"][:3]] == ["load_figure", "load_figure_2", "load_seconds"], d["metrics"]
assert [m["decides"] for m in d["metrics"][:3]] == [True, False, False]
assert d["allocators"][1]["metrics"]["load_figure_2"]["samples"] == [2000] * 5' || fail 'two figures in JSON'
serve --runs 5 --metric 'points ([0-9]+)' --metric-less-is-better
expect_in output 'Best by points: system, then sluice.'
serve --runs 5 --metric-more-is-better --metric 'points ([0-9]+)' --metric 'p99=([0-9.]+)'
expect_in output 'Best by points: sluice, then system.'
expect_in output 'Best by p99: system, then sluice.'
serve --runs 5 --metric 'points ([0-9]+)'
expect_status 0
expect_in output "Note: whether more or less of 'points' is better is not known"
case "$output" in *'Best by'*) fail "somebody is ranked by a figure of unknown direction: $output" ;; esac
expect_in output '2.0 times higher'

# A figure of a program that is no service.
cat >program <<'END'
case $LD_PRELOAD in *libsluice.so*) echo '1.5ms a turn' ;; *) echo '900us a turn' ;; esac
END
run "$SLUICE" compare --runs 5 --warmup 0 --with system,sluice --ignore-output --metric '([0-9.]+)[mu]s a turn' --json own.json -- sh program
expect_status 0
expect_in output 'Best by s a turn: system, then sluice.'
"$python" -c 'import json; d = json.load(open("own.json"))
assert [round(a["metrics"]["load_figure"]["median"]) for a in d["allocators"]] == [900, 1500], d' || fail 'units that a program chooses'

# --diff follows it as well: half the rate is worse, twice the rate is not.
"$python" - <<'END'
import json
for name, factor in (("half", 0.5), ("same", 1), ("twice", 2)):
    document = json.load(open("rate.json"))
    for allocator in document["allocators"]:
        metrics = allocator["metrics"]
        metrics["load_figure"]["samples"] = [factor * each for each in metrics["load_figure"]["samples"]]
        metrics["load_seconds"]["samples"] = [0.1 / factor] * 5
        metrics["peak_rss_kib"]["samples"] = [5000] * 5
    json.dump(document, open(name + ".json", "w"))
    # The same figure, which was the second one then.
    document["metrics"][0]["name"] = "load_figure_2"
    for allocator in document["allocators"]:
        allocator["metrics"]["load_figure_2"] = allocator["metrics"].pop("load_figure")
    json.dump(document, open(name + "-second.json", "w"))
    # As the command wrote it before it knew of directions.
    del document["metrics"], document["summary"]
    for allocator in document["allocators"]:
        allocator["metrics"]["load_figure"] = allocator["metrics"].pop("load_figure_2")
    json.dump(document, open(name + "-old.json", "w"))
END
run "$SLUICE" compare --diff same.json half.json
expect_status 1
expect_in output '50.0 % lower, worse'
expect_in output 'Something is worse than before.'
run "$SLUICE" compare --diff same.json twice.json
expect_status 0
expect_in output '2.0 times higher, better'
expect_in output 'Nothing is worse than before.'
run "$SLUICE" compare --diff same-second.json half.json
expect_status 1
expect_in output '50.0 % lower, worse'
run "$SLUICE" compare --diff same-old.json half.json
expect_status 1
expect_in output '50.0 % lower, worse'
run "$SLUICE" compare --diff same-old.json twice-old.json
expect_status 0
expect_in output '2.0 times higher'

run "$SLUICE" compare --metric-more-is-better -- true
expect_one_line_error 2 '--metric-more-is-better needs --metric'
run "$SLUICE" compare --metric 'x' -- true
expect_one_line_error 2 'it has no group'
pgrep -f 'sleep 4751' && fail 'a service was left'
finish
