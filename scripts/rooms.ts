// The rooms of `src` as data: what each may import. The import rules, the lint rules for pure rooms and the check of the table in
// ARCHITECTURE.md all derive from this object; the compiler's list in tsconfig.pure.json is compared with it.
//
// The order is the reading order of ARCHITECTURE.md. `bin` is no room: it may import everything, and nothing imports it.

/** What one room may import besides itself. */
export type RoomRow = {
  /** Rooms whose values and types it may use. */
  readonly rooms: readonly string[];
  /** Rooms of which it may use types only. */
  readonly typesOf: readonly string[];
  /** Packages; a name that ends in a slash stands for a whole scope. */
  readonly packages: readonly string[];
  /** Packages of which it may use types only. */
  readonly typesOfPackages: readonly string[];
  /** No clock, no randomness, no IO, nothing asynchronous, no Node built-in. */
  readonly isPure: boolean;
};

/** Every room by its path below `src`. */
export const ROOMS: Readonly<Record<string, RoomRow>> = {
  base: room({ isPure: true }),
  timer: room({ rooms: ["base"], isPure: true }),
  protocol: room({ rooms: ["base", "timer"], packages: ["zod"], isPure: true }),
  resource: room({ rooms: ["base"], packages: ["zod"], isPure: true }),
  topology: room({ rooms: ["base", "protocol"], typesOf: ["resource"], isPure: true }),
  concurrency: room({ rooms: ["base"] }),
  system: room({ rooms: ["base"] }),
  worker: room({ rooms: ["base", "timer", "protocol", "topology", "concurrency"] }),
  "operator/plan": room({ rooms: ["base", "resource", "topology"], isPure: true }),
  operator: room({ rooms: ["base", "resource", "topology", "operator/plan", "concurrency"] }),
  "nats/core": room({ rooms: ["base", "protocol", "concurrency"], packages: ["@nats-io/"] }),
  nats: room({
    rooms: ["base", "protocol", "timer", "concurrency", "nats/core"],
    typesOf: ["worker", "operator", "operator/plan", "topology"],
    packages: ["@nats-io/"],
  }),
  "kube/manifests": room({ rooms: ["base", "resource"], typesOf: ["operator", "operator/plan"], typesOfPackages: ["@kubernetes/"], isPure: true }),
  kube: room({ rooms: ["base", "resource", "concurrency", "kube/manifests"], typesOf: ["operator", "operator/plan"], packages: ["@kubernetes/"] }),
  local: room({ rooms: ["base", "resource", "concurrency"], typesOf: ["operator", "operator/plan"], packages: ["yaml"] }),
  telemetry: room({ rooms: ["base"], typesOf: ["worker", "operator", "operator/plan"], packages: ["pino", "prom-client"] }),
  client: room({ rooms: ["base", "protocol", "timer", "concurrency", "system", "nats/core"] }),
  cli: room({
    rooms: ["base", "protocol", "resource", "topology", "operator/plan", "kube/manifests", "client", "system"],
    typesOf: ["operator"],
    packages: ["yaml", "commander"],
  }),
};

/** Paths below `src` of the rooms that are pure. */
export const PURE_ROOMS: readonly string[] = Object.entries(ROOMS).filter(([, { isPure }]) => isPure).map(([name]) => name);

/** Files that something outside of `src` starts or imports; everything else is reached from them. */
export const ENTRY_POINTS: readonly string[] = [
  "src/bin/", "src/client/index.ts", "src/resource/crd.ts", "src/resource/values-schema.ts", "src/kube/manifests/operator-role.ts",
];

/** The room of a file of `src`, the innermost one, or undefined outside of all rooms. */
export function roomOf(path: string): string | undefined {
  const candidates = Object.keys(ROOMS).filter((name) => path.startsWith(`src/${name}/`));
  return candidates.sort((a, b) => b.length - a.length)[0];
}

/** The table as ARCHITECTURE.md shows it. */
export function roomsTable(): string {
  const cell = (names: readonly string[]): string => (names.length === 0 ? "–" : names.map((name) => name.replace(/\/$/, "/*")).join(", "));
  const rows = Object.entries(ROOMS).map(([name, row]) => {
    const typesOnly = cell([...row.typesOf, ...row.typesOfPackages]);
    return `| ${name} | ${cell(row.rooms)} | ${typesOnly} | ${cell(row.packages)} | ${row.isPure ? "yes" : "no"} |`;
  });
  return ["| room | may import | types only | packages | pure |", "|---|---|---|---|---|", ...rows].join("\n");
}

function room(row: Partial<RoomRow>): RoomRow {
  return { rooms: [], typesOf: [], packages: [], typesOfPackages: [], isPure: false, ...row };
}
