#!/usr/bin/env node
// npx sluice-malloc: runs a Node program on Sluice's malloc. Open it to add an option.
"use strict";
const { spawn } = require("node:child_process");
const { parseArgs } = require("node:util");
const { environment, library } = require("./index.js");

const usage = `Usage: sluice-malloc run [OPTIONS] [--] SCRIPT|-e CODE [ARGUMENT...]
       sluice-malloc path [--secure]
run starts this Node again, with the library preloaded; path prints the library's path, for LD_PRELOAD.

  --secure   libsluice-secure.so, which stops at memory errors
  --stats    print statistics to stderr at exit (SLUICE_STATS=1)
  --         what follows is for Node, its own options too
  --help     print this
`;

function fail(message, status) {
  process.stderr.write(`sluice-malloc: error: ${message}\n`);
  process.exit(status);
}

// Returns our options and what is for Node: the first word that is no option of ours, and all behind it.
function split([command, ...words]) {
  let at = words.findIndex((word) => word === "--" || !(word.startsWith("--") || word === "-h"));
  if (at < 0) at = words.length;
  const options = { help: { type: "boolean", short: "h" }, secure: { type: "boolean" } };
  if (command === "run") options.stats = { type: "boolean" };
  const { values } = parseArgs({ args: words.slice(0, at), options });
  return { values, program: words.slice(words[at] === "--" ? at + 1 : at) };
}

function run(program, variables) {
  const child = spawn(process.execPath, [...process.execArgv, ...program], { stdio: "inherit", env: variables });
  // A terminal sends its signals to the child as well.
  const terminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
  const signals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR2"];
  for (const signal of signals)
    process.on(signal, () => terminal && (signal === "SIGINT" || signal === "SIGQUIT") || child.kill(signal));
  child.on("error", (error) => fail(`${process.execPath}: ${error.message}`, 125));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    for (const name of signals) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}

function main(words) {
  if (words[0] === "-h" || words[0] === "--help") return void process.stdout.write(usage);
  if (words[0] !== "run" && words[0] !== "path") fail(`${words.length ? `no command '${words[0]}'` : "no command"} (see --help)`, 2);
  let given;
  try {
    given = split(words);
  } catch (error) {
    fail(`${error.message.split(".")[0]} (see --help)`, 2);
  }
  if (given.values.help) return void process.stdout.write(usage);
  if (words[0] === "run" && !given.program.length) fail("run: no script is named (see --help)", 2);
  if (words[0] === "path" && given.program.length) fail(`path takes no '${given.program[0]}' (see --help)`, 2);
  try {
    if (words[0] === "path") return void process.stdout.write(library(given.values) + "\n");
    const variables = environment(process.env, given.values);
    if (given.values.stats) variables.SLUICE_STATS = "1";
    run(given.program, variables);
  } catch (error) {
    fail(error.message, 125);
  }
}

main(process.argv.slice(2));
