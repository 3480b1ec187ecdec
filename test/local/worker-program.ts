// Stands for a worker in tests of local mode: answers /readyz on its health port with what READY says, and notes its configuration.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const config = JSON.parse(process.env["DURABLE_TIMER_WORKER_CONFIG"] ?? "{}") as { readonly healthPort: number; readonly lookahead: number };
const notes = process.env["NOTES_FOLDER"];
if (notes !== undefined) {
  const { DURABLE_TIMER_WORKER_NAME: name, DURABLE_TIMER_HEALTH_HOST: host } = process.env;
  writeFileSync(`${notes}/${String(process.pid)}.json`, JSON.stringify({ config, name, host }));
}

createServer((request, response) => {
  response.statusCode = request.url === "/readyz" && process.env["READY"] !== "no" ? 200 : 503;
  response.end();
}).listen(config.healthPort, "127.0.0.1");

process.on("SIGTERM", () => { process.exit(0); });
