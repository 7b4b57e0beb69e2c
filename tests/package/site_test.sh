#!/bin/sh
# The site that CMake is told of, or that scripts/site has made in the sources, is installed, and the installed command knows where; one
# that is not there is an error before anything is built. cli.docs tests what the command says where no site is installed.
# site_test.sh COMMAND INSTALLED_DOCUMENTS SOURCES
set -eu
command=$1 page=$2/html/index.html sources=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# configure SITE: the documents alone, which nothing is built for.
configure() {
  cmake -S "$sources" -B "$folder/build" -DSLUICE_TESTS=OFF -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF -DSLUICE_SITE="$1" >"$folder/log" 2>&1
}

! configure "$folder/none" || { echo "FAILED: a site that is not there is no error" && exit 1; }
grep -qF "there is no $folder/none/index.html" "$folder/log" || { cat "$folder/log" && echo "FAILED: another error" && exit 1; }
mkdir -p "$folder/site/assets" "$folder/prefix/bin"
echo '<title>Sluice</title>' >"$folder/site/index.html"
echo '/* */' >"$folder/site/assets/site.css"
configure "$folder/site" && cmake --install "$folder/build" --prefix "$folder/prefix" --component sluice_documents >>"$folder/log" 2>&1 ||
  { cat "$folder/log" && echo "FAILED: the documents are not installed" && exit 1; }
cp "$command" "$folder/prefix/bin/sluice"
printed=$("$folder/prefix/bin/sluice" docs --path)
diff -r "$folder/site" "$(dirname "$printed")" || { echo "FAILED: docs --path says $printed" && exit 1; }

if [ -f "$sources/build/site/index.html" ]; then
  [ "$("$command" docs --path)" = "$page" ] || { echo "FAILED: docs --path: $("$command" docs --path)" && exit 1; }
  diff -rq "$sources/build/site" "$(dirname "$page")" || { echo "FAILED: it is not the site of $sources" && exit 1; }
fi
