#!/usr/bin/env bash
# The drop-in for services: systemd takes it, and would have said so if it did not.
source "$(dirname "$0")/testing.sh"
command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
mkdir "$workspace/some.service.d"
printf '[Service]\nExecStart=/bin/true\n' >"$workspace/some.service"
cp "$tests/../lib/packages/systemd/sluice.conf" "$workspace/some.service.d"
complaints() { SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no --recursive-errors=no "$workspace/some.service" 2>&1 | grep -F some.service.d || true; }
[[ -z $(complaints) ]] || fail "$(complaints)"
sed -i 's/^Environment=/Surroundings=/' "$workspace/some.service.d/sluice.conf"
[[ -n $(complaints) ]] || fail "a wrong setting is not seen: this test could not fail"
echo "$0: passed"
