/**
 * A small HTTP server for probes and scrapers: /livez, /readyz, /metrics.
 *
 * It owns nothing of what it shows: checks and metrics are asked for at each request. It answers GET and HEAD only,
 * reads no body, and bounds the size of a request, the time it may take and the connections at once (I13).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { healthConnectionCountMax, healthHeaderBytesMax, healthRequestMsMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Exposition } from "./metrics.ts";

/** What is wrong, as sentences for a person; empty when all is well. */
export type Check = () => readonly string[];

export type HealthOptions = {
  /** 0 takes any free port. */
  readonly port: number;
  /** All interfaces unless given: probes come from outside of the pod. */
  readonly host?: string;
  readonly live: Check;
  readonly ready: Check;
  readonly metrics: Exposition;
  readonly log: Log;
};

/** A server that listens; the port is the one it got. */
export type HealthServer = { readonly port: number; close(): Promise<void> };

/** Listens; rejects when the port cannot be had. */
export async function openHealth(options: HealthOptions): Promise<HealthServer> {
  const server = createServer(
    { maxHeaderSize: healthHeaderBytesMax, requestTimeout: healthRequestMsMax, headersTimeout: healthRequestMsMax, keepAliveTimeout: healthRequestMsMax, connectionsCheckingInterval: 1_000 },
    (request, response) => {
      answer(options, request, response).catch((error: unknown) => {
        options.log.error({ err: error }, "Answered a health request with an error");
        send(response, { status: 500, text: "internal error\n" });
      });
    },
  );
  server.maxConnections = healthConnectionCountMax;
  await listen(server, options);
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

type Answer = { readonly status: number; readonly text: string; readonly contentType?: string };

async function answer(options: HealthOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    // The rest of such a request is not read, so its connection cannot be used again.
    response.setHeader("connection", "close");
    response.setHeader("allow", "GET, HEAD");
    return send(response, { status: 405, text: "only GET and HEAD are answered\n" });
  }
  switch ((request.url ?? "").replace(/\?.*/s, "")) {
    case "/livez":
      return send(response, checked(options.live()));
    case "/readyz":
      return send(response, checked(options.ready()));
    case "/metrics":
      return send(response, { status: 200, text: await options.metrics.text(), contentType: options.metrics.contentType });
    default:
      return send(response, { status: 404, text: "see /livez, /readyz and /metrics\n" });
  }
}

function checked(problems: readonly string[]): Answer {
  return problems.length === 0 ? { status: 200, text: "ok\n" } : { status: 503, text: problems.map((problem) => `${problem}\n`).join("") };
}

function send(response: ServerResponse, { status, text, contentType = "text/plain; charset=utf-8" }: Answer): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(text), "cache-control": "no-store" });
  response.end(response.req.method === "HEAD" ? undefined : text);
}

function listen(server: Server, { port, host, log }: HealthOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.removeListener("error", reject);
      server.on("error", (error) => { log.warn({ err: error }, "Met an error in the health endpoint"); });
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => { resolve(); });
    server.closeAllConnections();
  });
}
