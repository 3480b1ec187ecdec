/**
 * The few calls that the bed itself makes to an API server. Deliberately not the product's client:
 * the bed must not depend on what it is there to test.
 */
import { request } from "node:https";
import type { Connection } from "./kubeconfig.ts";
import { readKubeconfig } from "./kubeconfig.ts";

export type ApiRequest = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root, with the query: `/api/v1/namespaces/default/pods?limit=1`. */
  readonly path: string;
  readonly body?: unknown;
};

/** An answer of 400 or above. `reason` is the API's own word: NotFound, Forbidden, AlreadyExists. */
export class ApiRefusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(what: string, status: number, answer: { readonly reason?: string; readonly message?: string }) {
    super(`${what}: ${status} ${answer.message ?? ""}`);
    this.name = "ApiRefusal";
    this.status = status;
    this.reason = answer.reason ?? "";
  }
}

/** Makes one call on a connection of its own. JSON answers are parsed; others come back as text. */
export async function callApi<Answer = unknown>(connection: Connection, call: ApiRequest): Promise<Answer> {
  const { status, text, contentType } = await exchange(connection, call);
  const answer: unknown = contentType.includes("json") ? JSON.parse(text) : text;
  if (status < 400) return answer as Answer;
  throw new ApiRefusal(`${call.method} ${call.path}`, status, typeof answer === "string" ? { message: answer } : (answer as object));
}

/** Makes one call as the user of a kubeconfig file. */
export async function callApiAs<Answer = unknown>(kubeconfigPath: string, call: ApiRequest): Promise<Answer> {
  return await callApi<Answer>(await readKubeconfig(kubeconfigPath), call);
}

/** Creates an object, or leaves the one that is there. */
export async function createIfAbsent(connection: Connection, path: string, body: unknown): Promise<void> {
  try {
    await callApi(connection, { method: "POST", path, body });
  } catch (error) {
    if (!(error instanceof ApiRefusal && error.reason === "AlreadyExists")) throw error;
  }
}

type Exchange = { readonly status: number; readonly text: string; readonly contentType: string };

async function exchange(connection: Connection, call: ApiRequest): Promise<Exchange> {
  const { credentials } = connection;
  const body = call.body === undefined ? undefined : JSON.stringify(call.body);
  const identity =
    "token" in credentials ? {} : { cert: credentials.certificatePem, key: credentials.keyPem };
  return await new Promise((resolve, reject) => {
    const outgoing = request(new URL(call.path, connection.serverUrl), {
      method: call.method,
      agent: false,
      ca: connection.authorityPem,
      ...identity,
      timeout: CALL_TIMEOUT_MS,
      headers: {
        accept: "application/json, text/plain",
        ...("token" in credentials ? { authorization: `Bearer ${credentials.token}` } : {}),
        ...(body === undefined ? {} : { "content-type": contentTypeOf(call.method), "content-length": Buffer.byteLength(body) }),
      },
    });
    outgoing.once("timeout", () => outgoing.destroy(new Error(`${call.path}: no answer within ${CALL_TIMEOUT_MS} ms`)));
    outgoing.once("error", reject);
    outgoing.once("response", (incoming) => {
      let text = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => (text += chunk));
      incoming.once("error", reject);
      incoming.once("end", () => {
        resolve({ status: incoming.statusCode ?? 0, text, contentType: incoming.headers["content-type"] ?? "" });
      });
    });
    outgoing.end(body);
  });
}

function contentTypeOf(method: ApiRequest["method"]): string {
  return method === "PATCH" ? "application/merge-patch+json" : "application/json";
}

const CALL_TIMEOUT_MS = 10_000;
