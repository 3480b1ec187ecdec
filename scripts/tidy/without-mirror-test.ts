// The files of src that need no test at the mirrored place, each with where it is tested instead.

/** Reason by path. The check complains about an entry that has become unnecessary. */
export const WITHOUT_MIRROR_TEST: Readonly<Record<string, string>> = {
  "src/topology/layout.ts": "types and one number; test/topology/stamp.test.ts",
  "src/nats/core/admin.ts": "test/conformance/admin.ts, against real servers",
  "src/nats/core/background.ts": "one call; every test of nats/core runs through it",
  "src/nats/core/batch.ts": "test/conformance/writes.ts, against real servers",
  "src/nats/core/delivered.ts": "test/conformance/sources.ts, against real servers",
  "src/nats/core/link.ts": "test/conformance/, against real servers",
  "src/nats/core/nats-jetstream.ts": "test/conformance/, against real servers",
  "src/nats/core/scan-cursor.ts": "test/conformance/reads.ts and crash.ts, against real servers",
  "src/nats/core/scan.ts": "test/conformance/reads.ts and crash.ts, against real servers",
  "src/nats/core/stream-state.ts": "test/conformance/admin.ts, against real servers",
  "src/nats/observation.ts": "test/nats/operator-broker.int.test.ts",
  "src/nats/worker-ports.ts": "wiring only; each port has a test beside it in test/nats/",
};
