#!/usr/bin/env bash
# The package for npm: npx runs Node programs on Sluice with it, whose exit status and signals are passed on.
source "$(dirname "$0")/testing.sh"
packages=("$files"/sluice-malloc-"$version"-linux-*.tgz)
[[ -f ${packages[0]} && ${#packages[@]} == 1 ]] || fail "no package for npm, or more than one"
command -v node >/dev/null || skip "no node here"
node -e 'require("node:util").parseArgs' 2>/dev/null || skip "Node is older than 18.3"

# As npm unpacks it.
mkdir "$workspace/unpacked"
tar -xzf "${packages[0]}" -C "$workspace/unpacked" --strip-components=1
command=$workspace/unpacked/command.js
cat >"$workspace/script.js" <<'END'
const mapped = (text) => [/libsluice\.so/.test(text), /libsluice-secure\.so/.test(text)].join();
const child = require("node:child_process").execFileSync("cat", ["/proc/self/maps"], { encoding: "utf8" });
console.log(process.argv.slice(2).join(), mapped(require("node:fs").readFileSync("/proc/self/maps", "utf8")), "child", mapped(child));
process.exitCode = 3;
END
status 3 "a b,--stats true,false child true,false" node "$command" run "$workspace/script.js" 'a b' --stats
status 3 " false,true child false,true" node "$command" run --secure "$workspace/script.js"
status 0 "collects function" node "$command" run -- --expose-gc -e 'console.log("collects", typeof gc)'
status 0 "peak" node "$command" run --stats -e 0
status 0 "/libsluice-secure.so" node "$command" path --secure
status 0 "1 libsluice" env LD_PRELOAD="$(node "$command" path)" node "$command" run -e \
  'console.log(process.env.LD_PRELOAD.split("libsluice.so").length - 1, "libsluice")'
status 2 "no script is named" node "$command" run
status 2 "no command" node "$command"
status 2 "Unknown option '--sure'" node "$command" run --sure "$workspace/script.js"
status 143 "" node "$command" run -e 'process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 60000)'
# A signal to the command reaches the program.
status 0 "asked to end" node -e '
const { spawn } = require("node:child_process");
const code = "process.on(\"SIGTERM\", () => { console.log(\"asked to end\"); process.exit(); }); setTimeout(() => {}, 60000); console.log(1);";
const child = spawn(process.argv[1], ["run", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
child.stdout.on("data", (text) => { process.stdout.write(text); if (String(text) === "1\n") child.kill("SIGTERM"); });
child.on("exit", (code) => process.exit(code));' "$command"
# What lib/docs/languages.md says lies in memory of malloc.
peak() { env SLUICE_STATS=json:"$workspace/stats" node "$command" run -e "$1" && sed -n 's/.*"peak_live_bytes": \([0-9]*\).*/\1/p' "$workspace/stats" | head -n 1; }
(($(peak 'Buffer.alloc(2e8)') > 200000000)) || fail "a buffer does not lie in Sluice's memory"
(($(peak 'const words = []; for (let i = 0; i < 3e6; ++i) words.push({ i });') < 100000000)) || fail "JavaScript objects lie in Sluice's memory"

mkdir "$workspace/unpacked/a b"
cp "$workspace/unpacked"/*.{js,so} "$workspace/unpacked/a b"
status 125 "no path with a colon or a space" node "$workspace/unpacked/a b/command.js" path
rm "$workspace/unpacked/libsluice.so"
status 125 "not complete" node "$command" run "$workspace/script.js"

# By npx, from a project that has it; nothing is asked of the registry.
command -v npx >/dev/null || skip "no npx here: only the files were tested"
mkdir "$workspace/project"
cd "$workspace/project"
export npm_config_cache=$workspace/npm npm_config_offline=true npm_config_update_notifier=false
npm install --silent --no-audit --no-fund "${packages[0]}" >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "npm install"; }
status 3 "x true,false child true,false" npx sluice-malloc run "$workspace/script.js" x
status 0 "true" node -e 'console.log(require("sluice-malloc").environment({ LD_PRELOAD: "a.so" }).LD_PRELOAD.endsWith("/libsluice.so:a.so"))'
npm uninstall --silent sluice-malloc >/dev/null || fail "npm uninstall"
[[ -z $(find "$workspace/project" -name '*sluice*') ]] || fail "files stay after the package was uninstalled"
# Without a project.
cd "$workspace"
status 3 "x true,false child true,false" npx --yes --package "${packages[0]}" sluice-malloc run "$workspace/script.js" x
echo "$0: passed"
