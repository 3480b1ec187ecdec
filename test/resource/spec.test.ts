import { describe, expect, it } from "vitest";
import { specSchema } from "../../src/resource/spec.ts";
import { fullSpec, patched } from "./examples.ts";

describe("specSchema", () => {
  it("gives resources as a whole: what a person leaves out of them has no default", () => {
    const { workers } = specSchema.parse(patched({ workers: { resources: { limits: { memory: "1Gi" } } } }));
    expect(workers.resources).toEqual({ limits: { memory: "1Gi" } });
  });

  it("bounds maps by their number of keys", () => {
    const labels = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${String(index)}`, "v"]));
    const read = specSchema.safeParse(patched({ workers: { podTemplate: { metadata: { labels } } } }));
    expect(read.error?.issues.map(({ path }) => path.join("."))).toEqual(["workers.podTemplate.metadata.labels"]);
  });

  it("reads its own output of a full example as the same, sizes aside", () => {
    const once = specSchema.parse(fullSpec);
    expect(specSchema.parse(once)).toEqual(once);
  });
});
