// What the measured node does: JSON, maps, strings, regular expressions, buffers, compression, hashing, streams, half
// of it in a worker thread. Open it to change which features are measured. It draws its numbers itself, and prints
// nothing that depends on time or on which thread is faster.
"use strict";
const crypto = require("crypto");
const zlib = require("zlib");
const { once } = require("events");
const { pipeline } = require("stream/promises");
const { Readable, Transform } = require("stream");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

const rounds = 6;
const words = "amber birch cedar daisy elder fern grape hazel iris jasmine kale laurel mint nettle olive poppy"
  .split(" ");

function numbersFrom(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % limit;
  };
}

const digest = (data) => crypto.createHash("sha256").update(data).digest("hex").slice(0, 16);

function makeRecords(below) {
  const records = [];
  for (let id = 0; id < 6000; ++id) {
    const tags = Array.from({ length: 1 + below(4) }, () => words[below(words.length)]);
    const name = `${words[id % 16]} ${words[below(16)]}`;
    records.push({ id, name, price: below(99999) / 100, tags, at: { x: below(1000), y: below(1000) } });
  }
  return records;
}

function jsonAndMaps(records) {
  const text = JSON.stringify(records, null, 1);
  const again = JSON.parse(text, (key, value) => (key === "price" ? Math.round(value) : value));
  const byTag = new Map();
  for (const record of again)
    for (const tag of record.tags) {
      if (!byTag.has(tag)) byTag.set(tag, new Set());
      byTag.get(tag).add(record.id);
    }
  const sorted = again.sort((a, b) => b.price - a.price || a.name.localeCompare(b.name) || a.id - b.id);
  const copy = structuredClone(sorted.slice(0, 1000));
  return { text, shown: [digest(text), byTag.get("fern").size, copy[999].id].join(" ") };
}

function strings(text) {
  const upper = text.replace(/"name": "(\w+) (\w+)"/g, (all, first, second) => `"${second.toUpperCase()}-${first}"`);
  const parts = upper.split("\n").map((line) => line.trim().padEnd(24, "."));
  const counts = {};
  for (const [word] of upper.matchAll(/\b[a-z]{4,6}\b/g)) counts[word] = (counts[word] || 0) + 1;
  return [digest(parts.join("|")), Object.entries(counts).sort().slice(0, 2).join(";")].join(" ");
}

// Small buffers by the thousand, held and dropped in turns; conversions between encodings.
function buffers(below) {
  const held = [];
  let sum = 0;
  for (let i = 0; i < 12000; ++i) {
    const buffer = i % 3 ? Buffer.alloc(64 + below(8000), i) : Buffer.from(words[i % 16].repeat(1 + below(400)));
    sum = (sum + buffer[below(buffer.length)] + buffer.length) % 1000003;
    held[below(600)] = buffer;
  }
  const joined = Buffer.concat(held.filter(Boolean));
  const other = Buffer.from(joined.toString("base64"), "base64");
  return [sum, other.length, other.equals(joined), digest(other.toString("latin1"))].join(" ");
}

// Compression, whose state and windows come from malloc, one object and one stream at a time. What is shown is the size
// after decompression: that of the compressed data depends on the version of the library.
async function compression(records, text) {
  let total = 0;
  for (let i = 0; i < records.length; i += 20) {
    const small = Buffer.from(JSON.stringify(records.slice(i, i + 20)));
    const packed = i % 40 ? zlib.deflateSync(small) : zlib.gzipSync(small, { level: 4 });
    total += zlib.unzipSync(packed).length;
  }
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 };
  total += zlib.brotliDecompressSync(zlib.brotliCompressSync(text.slice(0, 200000), { params })).length;
  const hash = crypto.createHash("sha1");
  const lines = Readable.from(text.match(/[^]{1,4000}/g));
  const outdent = (part, encoding, done) => done(null, part.toString().replace(/\n +/g, "\n"));
  const packing = [new Transform({ transform: outdent }), zlib.createGzip({ level: 3 }), zlib.createGunzip()];
  await pipeline(lines, ...packing, async (parts) => {
    for await (const part of parts) hash.update(part);
  });
  return `${total} ${hash.digest("hex").slice(0, 16)}`;
}

function secrets(below) {
  let last = Buffer.from("start");
  for (let i = 0; i < 2000; ++i) {
    const key = last.subarray(0, 1).toString("hex").padEnd(16, "k");
    const cipher = crypto.createCipheriv("aes-128-gcm", key, Buffer.alloc(12, i));
    const secret = Buffer.concat([cipher.update(words[below(16)].repeat(9)), cipher.final(), cipher.getAuthTag()]);
    last = crypto.createHmac("sha256", "key").update(secret).digest();
  }
  return last.toString("hex").slice(0, 16);
}

async function work(seed) {
  const shown = [];
  for (let round = 0; round < rounds; ++round) {
    const below = numbersFrom(seed + round);
    const records = makeRecords(below);
    const { text, shown: first } = jsonAndMaps(records);
    shown.push(first, strings(text), buffers(below), await compression(records, text), secrets(below));
  }
  return shown;
}

async function main() {
  const worker = new Worker(__filename, { workerData: { seed: 1000 } });
  const answer = once(worker, "message");
  for (const line of [...(await work(1)), ...(await answer)[0]]) console.log(line);
}

if (isMainThread) main();
else work(workerData.seed).then((shown) => parentPort.postMessage(shown));
