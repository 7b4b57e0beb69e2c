// Sluice's malloc for Node programs: library() is the path of libsluice.so for LD_PRELOAD; environment() an environment with it.
// Open it to change how the library is found.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

// Returns the path of libsluice.so, or of libsluice-secure.so. Throws where LD_PRELOAD cannot name it.
function library({ secure = false } = {}) {
  const file = path.join(fs.realpathSync(__dirname), secure ? "libsluice-secure.so" : "libsluice.so");
  if (!fs.existsSync(file)) throw new Error(`${file}: the installation of sluice-malloc is not complete`);
  if (/[: ]/.test(file)) throw new Error(`${file}: LD_PRELOAD takes no path with a colon or a space`);
  return file;
}

// Returns a copy of an environment in which programs, and the programs that these start, run on Sluice.
function environment(base = process.env, { secure = false } = {}) {
  const others = (base.LD_PRELOAD ?? "").split(/[: ]+/).filter((name) => name && !name.includes("libsluice"));
  return { ...base, LD_PRELOAD: [library({ secure }), ...others].join(":") };
}

module.exports = { environment, library };
