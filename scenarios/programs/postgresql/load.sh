# Loads the measured server, by way of sh: load.sh FOLDER-OF-THIS-SCRIPT FOLDER TRANSACTIONS. Four clients look up
# single rows; one transaction of forty is one of the three files with larger queries. Open it to change the mixture.
set -eu
. "$1/settings.sh"
pgbench -h "$2" -U bench -n -c 4 -j 2 -t "$3" --random-seed=7 -b select-only@117 \
  -f "$1/report.sql@1" -f "$1/documents.sql@1" -f "$1/paths.sql@1" postgres
