/**
 * How the API server is reached: address, identity and sockets, from a kubeconfig file or from the pod's own account.
 *
 * The client package makes a new pool of sockets for each request: a TLS handshake each, and sockets left open behind it.
 * Here one pool serves all requests until a certificate, the only thing that it is made of, changes (a rotated file).
 */
import { KubeConfig, type DispatcherOptions, type RequestContext } from "@kubernetes/client-node";
import { assert } from "../base/assert.ts";
import { Failure } from "../base/failure.ts";

export type KubeSource =
  | { readonly kind: "file"; readonly path: string }
  /** The service account of the pod that this process runs in. */
  | { readonly kind: "inCluster" };

/** An identity at one API server, with the sockets to it. */
export class KubeConnection {
  readonly #config: PooledKubeConfig;
  readonly #serverUrl: string;

  /** Throws a Failure (CONFIG_INVALID) when the file cannot be used. */
  constructor(source: KubeSource) {
    this.#config = new PooledKubeConfig();
    load(this.#config, source);
    const cluster = this.#config.getCurrentCluster();
    if (cluster === null) throw new Failure("invalid", "CONFIG_INVALID", `find the current context in ${placeOf(source)}`);
    this.#serverUrl = cluster.server.replace(/\/+$/, "");
  }

  /** Without a slash at its end. */
  get serverUrl(): string {
    return this.#serverUrl;
  }

  /** Namespace of the kubeconfig's context, or of the pod. */
  get namespace(): string | undefined {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace;
  }

  /** Adds credentials (a token file is read again when it is old) and sockets to a request. */
  async authorize(request: RequestContext): Promise<void> {
    await this.#config.applySecurityAuthentication(request);
  }

  /** Closes the sockets at once; requests in flight fail. */
  async close(): Promise<void> {
    await this.#config.closePool();
  }
}

function load(config: KubeConfig, source: KubeSource): void {
  try {
    if (source.kind === "file") config.loadFromFile(source.path);
    else config.loadFromCluster();
  } catch (cause) {
    throw new Failure("invalid", "CONFIG_INVALID", `read ${placeOf(source)}`, { cause });
  }
}

function placeOf(source: KubeSource): string {
  return source.kind === "file" ? `the kubeconfig ${source.path}` : "the service account of this pod";
}

type Pool = { readonly key: string; readonly dispatcher: Dispatcher | undefined };
type Dispatcher = NonNullable<ReturnType<RequestContext["getDispatcher"]>>;
type CreateDispatcher = (cluster: Parameters<KubeConfig["createDispatcherOptions"]>[0], agent: AgentOptions) => Dispatcher | undefined;
type AgentOptions = Parameters<KubeConfig["createDispatcherOptions"]>[1];

class PooledKubeConfig extends KubeConfig {
  #pool: Pool | undefined;

  constructor() {
    super();
    // The method is private in the package's types. Should a new version drop it, the pool would silently be gone.
    const seam = this as unknown as { createDispatcher: CreateDispatcher };
    assert(typeof seam.createDispatcher === "function", "a client package that creates its dispatchers in one place");
    const create = seam.createDispatcher.bind(this);
    seam.createDispatcher = (cluster, agent) => this.#pooled(poolKey(cluster, agent), () => create(cluster, agent));
  }

  override createDispatcherOptions(...args: Parameters<KubeConfig["createDispatcherOptions"]>): DispatcherOptions {
    const options = super.createDispatcherOptions(...args);
    if (options.type !== "agent") return options;
    // One HTTP/2 connection would carry everything, and everything would hang with it; HTTP/1.1 loses one request.
    const connect = { ...options.connect, allowH2: false, timeout: connectTimeoutMs };
    return { ...options, connect };
  }

  async closePool(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.dispatcher?.destroy();
  }

  #pooled(key: string, create: () => Dispatcher | undefined): Dispatcher | undefined {
    if (this.#pool?.key === key) return this.#pool.dispatcher;
    const old = this.#pool?.dispatcher;
    this.#pool = { key, dispatcher: create() };
    // Requests in flight on the old certificates end by themselves, and their sockets with them.
    old?.close().catch(() => undefined);
    return this.#pool.dispatcher;
  }
}

function poolKey(...[cluster, agent]: Parameters<CreateDispatcher>): string {
  const texts = [agent.ca, agent.cert, agent.key].map((part) => (part instanceof Uint8Array ? part.toString("latin1") : part));
  return JSON.stringify([cluster?.server, cluster?.proxyUrl, agent.servername, agent.rejectUnauthorized, ...texts]);
}

const connectTimeoutMs = 5_000;
