// Runs Perfetto's trace processor, which its user interface has as WebAssembly, for a program that talks to it by pipes:
// stdin has requests (a length of 4 bytes, little endian, and a TraceProcessorRpcStream), stdout has the replies.
//
//     node serve.js FOLDER     FOLDER: that of engine_bundle.js and trace_processor*.wasm
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const told = (...words) => process.stderr.write(words.join(" ") + "\n");

function write(reply) {
  const bytes = Buffer.from(reply);
  for (let done = 0; done < bytes.length; ) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error; // the pipe is full
    }
  }
}

// The engine is a worker of a browser: it asks such a worker for its files, and for nothing of node.
class FileRequest {
  open(method, url) {
    this.name = path.basename(url);
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, this.name));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
}
const port = { onmessage: null, postMessage: write };
const worker = {
  console: { log: told, warn: told, error: told, info: told, debug: told },
  location: { href: "http://localhost/engine_bundle.js" },
  XMLHttpRequest: FileRequest,
  WorkerGlobalScope: function WorkerGlobalScope() {},
  TextDecoder, TextEncoder, URL, performance, crypto, setTimeout, clearTimeout,
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
worker.onmessage({ data: port });
const array = vm.runInContext("(length) => new Uint8Array(length)", worker); // of the engine's world, as it asks for

let waiting = Buffer.alloc(0);
process.stdin.on("data", (data) => {
  waiting = Buffer.concat([waiting, data]);
  while (waiting.length >= 4 && waiting.length >= 4 + waiting.readUInt32LE(0)) {
    const end = 4 + waiting.readUInt32LE(0);
    const request = array(end - 4);
    request.set(waiting.subarray(4, end));
    waiting = waiting.subarray(end);
    port.onmessage({ data: request });
  }
});
process.stdin.on("end", () => process.exit(0));
