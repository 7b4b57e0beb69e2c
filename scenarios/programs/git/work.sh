# What the measured git does in the repository that prepare.sh has made, by way of sh: histories, differences, blame,
# a search, a repack, a check and a clone. Open it to change which features are measured.
set -eu
. "$1/settings.sh"
cd "$2"
git log --all --stat --format=%s | cksum
git log -p --date-order topic | cksum
git log --oneline -S'socket 7' main | cksum
git blame main -- part00/stream/file000.txt | cksum
git diff -M --numstat main~400 topic | cksum
git grep -c -E 'thread (driver|cursor) [0-9]{3}' main | cksum
git rev-list --all --objects | cksum
git -c pack.threads=2 repack -adfq --depth=20 --window=12
git fsck --full --no-progress --no-dangling
git clone -q --no-hardlinks --local . clone
git -C clone checkout -q origin/topic
git -C clone archive --format=tar HEAD | cksum
git -C clone status --short | cksum
