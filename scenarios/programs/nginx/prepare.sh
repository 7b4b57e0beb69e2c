#!/usr/bin/env bash
# Makes the folder from which the measured nginx serves: its configuration, a page, and the parts of the page. Open it
# to change their size.
set -euo pipefail

if (($# != 4)); then
  echo "Usage: prepare.sh FOLDER-OF-THIS-SCRIPT FOLDER PORT USER" >&2
  exit 2
fi
data=$1 work=$2 port=$3 user=$4
mkdir -p "$work/pages" "$work/temporary"
group=$(id -gn "$user")
sed -e "s|@WORK@|$work|; s|@PORT@|$port|; s|@USER@|$user|; s|@GROUP@|$group|" "$data/nginx.conf" > "$work/nginx.conf"

for part in {1..6}; do
  for ((i = 0; i < part * 25; ++i)); do
    echo "<li>item $((i * 7919 % 1000)) of part $part, of the color $((i * 31 % 17)), 100 % new</li>"
  done > "$work/pages/part$part.txt"
done
{
  echo '<html><head><title>Parts</title></head><body class="%LABEL%">'
  echo '<!--#set var="name" value="reader" --><p>Dear <!--#echo var="name" default="nobody" -->,</p>'
  for part in {1..6}; do
    echo "<!--#if expr=\"\$arg_kind = /^a/\" --><h2>First</h2><!--#else --><h2>Part $part</h2><!--#endif -->"
    echo "<ul><!--#include virtual=\"/parts/part/$part\" --></ul>"
  done
  echo '</body></html>'
} > "$work/pages/page.html"
chmod 755 "$work/pages"
chmod 644 "$work"/pages/*
