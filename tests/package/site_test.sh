#!/bin/sh
# The site is installed where scripts/site has made one, and the command knows where; else it says what is missing.
# site_test.sh COMMAND INSTALLED_DOCUMENTS SITE
page=$2/html/index.html
if [ -f "$3/index.html" ]; then
  [ "$("$1" docs --path)" = "$page" ] || { echo "FAILED: docs --path: $("$1" docs --path)" && exit 1; }
  diff -rq "$3" "$2/html" || { echo "FAILED: it is not the site of $3" && exit 1; }
  exit 0
fi
said=$("$1" docs --path 2>&1) && echo "FAILED: there is no site, and docs --path says $said" && exit 1
case $said in
  *"no $page:"*) ;;
  *) echo "FAILED: $said" && exit 1 ;;
esac
