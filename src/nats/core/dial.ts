/**
 * How we connect: the client library's options, and secrets that are read anew at each dial.
 *
 * The library's own defaults are wrong for a service that waits for days: it gives up after ten attempts, notices a
 * dead peer after six minutes, and stops for good when credentials are refused twice.
 */
import { readFileSync } from "node:fs";
import { credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
import type { Auth, Authenticator, ConnectionOptions, TlsOptions } from "@nats-io/transport-node";
import { unreachable } from "../../base/assert.ts";
import { utf8 } from "../../base/bytes.ts";
import { Failure } from "../../base/failure.ts";
import { dialTimeoutMs, pingIntervalMs } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import type { BrokerAuth, BrokerOptions, BrokerTls } from "./jetstream.ts";

export type DialHooks = {
  /** Called before each attempt to reconnect, in the same turn in which the connection was found lost; gives the wait. */
  readonly beforeDial: () => DurationMs;
  /** A secret could not be read; this dial goes on without it and will be refused. */
  readonly onSecretFailure: (failure: Failure) => void;
};

/** The client's options. The first connection is tried once per server and then fails; later ones are tried for ever. */
export function dialOptions(options: BrokerOptions, hooks: DialHooks): ConnectionOptions {
  const authenticator = options.auth === undefined ? undefined : safely(authenticatorOf(options.auth), hooks.onSecretFailure);
  const tls = tlsOptions(options);
  return {
    servers: [...options.servers],
    name: options.name,
    timeout: dialTimeoutMs,
    reconnect: true,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: hooks.beforeDial,
    waitOnFirstConnect: false,
    pingInterval: pingIntervalMs,
    maxPingOut: 2,
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(tls === undefined ? {} : { tls }),
  };
}

/** The library closes a connection for good when an authenticator throws, so none does: the server refuses the dial. */
function safely(authenticator: Authenticator, onFailure: (failure: Failure) => void): Authenticator {
  return (nonce) => {
    try {
      return authenticator(nonce);
    } catch (error) {
      onFailure(new Failure("denied", "CREDENTIALS_MISSING", "read the broker credentials", { cause: error }));
      return {} as Auth;
    }
  };
}

function authenticatorOf(auth: BrokerAuth): Authenticator {
  switch (auth.kind) {
    case "credentials":
      // The library finds the end of a seed only by the line break behind its last line.
      return credsAuthenticator(() => utf8(`${"file" in auth ? fileText(auth.file) : auth.text}\n`));
    case "nkey":
      return nkeyAuthenticator(() => utf8("seedFile" in auth ? fileText(auth.seedFile) : auth.seed));
    case "user":
      return () => ("userFile" in auth ? { user: fileText(auth.userFile), pass: fileText(auth.passwordFile) } : { user: auth.user, pass: auth.password });
    case "token":
      return () => ({ auth_token: "file" in auth ? fileText(auth.file) : auth.token });
    default:
      return unreachable(auth);
  }
}

/** Editors and `echo` leave a line break at the end of a secret, which is never part of it. */
function fileText(path: string): string {
  return readFileSync(path, "utf8").replace(/\r?\n$/, "");
}

/** A `tls://` server demands TLS by itself; without one and without settings, TLS is used when the server offers it. */
function tlsOptions({ servers, tls }: BrokerOptions): TlsOptions | undefined {
  if (tls === undefined) return servers.some((server) => server.startsWith("tls://")) ? {} : undefined;
  const { handshakeFirst, ...material } = tls;
  return { ...withoutTextBesideFile(material), handshakeFirst: handshakeFirst === true };
}

function withoutTextBesideFile({ caFile, certFile, keyFile, ca, cert, key }: Omit<BrokerTls, "handshakeFirst">): TlsOptions {
  return {
    ...(caFile === undefined ? (ca === undefined ? {} : { ca }) : { caFile }),
    ...(certFile === undefined ? (cert === undefined ? {} : { cert }) : { certFile }),
    ...(keyFile === undefined ? (key === undefined ? {} : { key }) : { keyFile }),
  };
}
