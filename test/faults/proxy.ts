/**
 * A TCP proxy between a program and its broker which delays, cuts and half-opens connections.
 *
 * P1 Order within a connection and direction is kept, whatever the delay.
 * P2 A half-open connection stays so until it is cut: bytes that were swallowed would leave a broken protocol behind. Connections that come
 *    later are whole.
 */
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";

/** `requests` travel to the broker, `replies` from it. */
export type Direction = "requests" | "replies";

/** The proxy; everything it does concerns connections through it and no others. */
export interface FaultProxy extends AsyncDisposable {
  /** In the place of the broker's own. */
  readonly url: string;
  /** How many connections were opened so far. */
  readonly connectionCount: number;
  /** Holds everything back by this time from now on, in both directions; 0 ends it. */
  delay(delayMs: number): void;
  /** Resets every connection; new ones are accepted at once. */
  cut(): void;
  /** Present connections stay open, but nothing passes in these directions any more. */
  halfOpen(directions: readonly Direction[]): void;
  close(): Promise<void>;
}

/** Listens on loopback in front of a broker. */
export async function openProxy(brokerUrl: string): Promise<FaultProxy> {
  const target = new URL(brokerUrl);
  const links = new Set<Link>();
  const settings = { delayMs: 0 };
  const counts = { connections: 0 };
  const server = createServer((near) => {
    counts.connections += 1;
    const far = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    near.setNoDelay(true);
    links.add(join({ near, far, settings }, (link) => links.delete(link)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const cut = () => { for (const link of [...links]) link.cut(); };
  const close = async () => {
    cut();
    await new Promise<void>((resolve) => { server.close(() => { resolve(); }); });
  };
  return {
    url: `nats://127.0.0.1:${String(address.port)}`,
    get connectionCount() { return counts.connections; },
    delay: (delayMs) => { settings.delayMs = delayMs; },
    cut,
    halfOpen: (directions) => { for (const link of links) for (const direction of directions) link.swallowed.add(direction); },
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Link = { readonly swallowed: Set<Direction>; cut(): void };

function join({ near, far, settings }: { readonly near: Socket; readonly far: Socket; readonly settings: { readonly delayMs: number } }, onEnd: (link: Link) => void): Link {
  const swallowed = new Set<Direction>();
  const link: Link = {
    swallowed,
    cut: () => {
      near.resetAndDestroy();
      far.resetAndDestroy();
      onEnd(link);
    },
  };
  const carry = ({ from, to, direction }: { readonly from: Socket; readonly to: Socket; readonly direction: Direction }) => {
    let readyAtMs = 0;
    from.on("data", (chunk: Buffer) => {
      if (swallowed.has(direction)) return;
      // P1: a delay that shrinks does not let later bytes overtake earlier ones.
      readyAtMs = Math.max(readyAtMs, performance.now() + settings.delayMs);
      const waitMs = readyAtMs - performance.now();
      if (waitMs <= 0) to.write(chunk);
      else setTimeout(() => { if (!to.destroyed) to.write(chunk); }, Math.ceil(waitMs));
    });
    from.on("error", () => { link.cut(); });
    // One side's end reaches the other unless the path between them is dead.
    from.on("close", () => { if (swallowed.size === 0 || from === near) link.cut(); });
  };
  carry({ from: near, to: far, direction: "requests" });
  carry({ from: far, to: near, direction: "replies" });
  return link;
}
