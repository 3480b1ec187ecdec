import { describe, expect, it } from "vitest";
import { statusSchema } from "../../src/resource/status.ts";

describe("statusSchema", () => {
  it("says that nothing was observed before the operator wrote anything", () => {
    expect(statusSchema.parse({})).toEqual({ observedGeneration: -1 });
  });

  it("reads a status of a newer operator: unknown words stay and unknown fields are left out", () => {
    const read = statusSchema.parse({
      observedGeneration: 7,
      timers: { resumePullers: "Sleeping" },
      workers: { replicas: 2, selector: "a=b", flavour: "new" },
      incidents: [{ id: "x-1", kind: "SomethingNew", message: "" }],
    });
    expect(read).toEqual({
      observedGeneration: 7,
      timers: { resumePullers: "Sleeping" },
      workers: { replicas: 2, selector: "a=b" },
      incidents: [{ id: "x-1", kind: "SomethingNew", message: "" }],
    });
  });

  it("keeps what the operator must remember about streams", () => {
    const stream = { name: "S", incarnation: "k3v9", created: "2026-11-30T20:00:00Z", replicas: 3, everHeldData: true, limitBytes: "40Gi", usedPercent: 60 };
    const status = { observedGeneration: 1, topology: { layoutVersion: 1, streams: [stream] } };
    expect(statusSchema.parse(status)).toEqual(status);
  });
});
