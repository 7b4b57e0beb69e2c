// Worker threads of node that pass buffers on, compress, hash and derive keys at once, some of them ended in the middle.
// Prints only what must be the same each time. Open it with workload_node_workers of real_workloads_languages.sh.
"use strict";
const crypto = require("crypto");
const zlib = require("zlib");
const { promisify } = require("util");
const { once } = require("events");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

const digest = (data) => crypto.createHash("sha256").update(data).digest("hex").slice(0, 16);
const fill = (buffer, seed) => {
  for (let i = 0; i < buffer.length; ++i) buffer[i] = (i * seed + (i >> 7)) & 0xff;
  return buffer;
};

// Buffers are made here, owned by the main thread afterwards, and freed by whoever is last.
async function work({ number, shared }) {
  const counter = new Int32Array(shared);
  const shown = [];
  for (let round = 0; round < 6; ++round) {
    const input = fill(Buffer.from(new ArrayBuffer(100000 + 1000 * round)), number + round + 1);
    const [packed, brotli, key, derived] = await Promise.all([
      promisify(zlib.gzip)(input, { level: 4 }),
      promisify(zlib.brotliCompress)(input, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } }),
      promisify(crypto.pbkdf2)(`secret ${number}`, "salt", 300, 64, "sha512"),
      promisify(crypto.scrypt)(`secret ${round}`, "salt", 32, { N: 256 }),
    ]);
    const again = await promisify(zlib.gunzip)(packed);
    const other = await promisify(zlib.brotliDecompress)(brotli);
    shown.push([again.equals(input), other.equals(input), digest(input), digest(key), digest(derived)].join(" "));
    parentPort.postMessage({ number, round, buffer: input.buffer }, [input.buffer]);
    Atomics.add(counter, 0, 1);
    await promisify(crypto.randomBytes)(5000);
  }
  parentPort.postMessage({ number, shown });
}

// Nothing of zlib: node 20 aborts now and then, on any malloc, when a worker ends while a stream is being made.
const endless = `const crypto = require("crypto");
  require("worker_threads").parentPort.postMessage("begun");
  const held = [];
  for (let i = 0; ; ++i) {
    held[i % 50] = Buffer.alloc(20000, i);
    held[i % 31] = crypto.createHash("sha1").update(held[i % 50]).digest();
  }`;

async function main() {
  const shared = new SharedArrayBuffer(4);
  const lines = [];
  let received = 0;
  const workers = Array.from({ length: 5 }, (_, number) => {
    const worker = new Worker(__filename, { workerData: { number, shared } });
    worker.on("message", (message) => {
      if (message.shown) lines.push(...message.shown.map((text, round) => `${message.number}.${round} ${text}`));
      else received += new Uint8Array(message.buffer).length;
    });
    return once(worker, "exit");
  });
  for (let i = 0; i < 3; ++i) {
    const worker = new Worker(endless, { eval: true });
    await once(worker, "message");
    await new Promise((resolve) => setTimeout(resolve, 30));
    lines.push(`ended with ${await worker.terminate()}`);
  }
  const limited = new Worker("const a = []; for (;;) a.push([1, 2, 3]);", { eval: true, resourceLimits: { maxOldGenerationSizeMb: 12 } });
  const [error] = await once(limited, "error");
  lines.push(`too large: ${error.code}`);
  await Promise.all(workers);
  lines.push(`received ${received}, counted ${Atomics.load(new Int32Array(shared), 0)}`);
  for (const line of lines.sort()) console.log(line);
}

if (isMainThread) main();
else work(workerData);
