# Becomes the measured server, by way of sh: serve.sh FOLDER-OF-THIS-SCRIPT USER FOLDER. Open it with settings.sh.
set -eu
. "$1/settings.sh"
serve "$2" "$3"
