import { describe, expect, it } from "vitest";
import { resourceBounds } from "../../src/resource/bounds.ts";
import { annotationNames, childNames, labelNames, reservedVariablePrefix, workerConfigVariable, workerSelector } from "../../src/resource/names.ts";

describe("names of children", () => {
  it("stay within a DNS label for the longest name of a resource", () => {
    const names = Object.values(childNames("n".repeat(resourceBounds.resourceNameCharsMax)));
    expect(names.filter((name) => name.length > 63)).toEqual([]);
  });

  it("select the workers of one resource and no operator", () => {
    expect(workerSelector("orders")).toEqual({ "app.kubernetes.io/component": "worker", "durabletimer.dev/name": "orders" });
  });
});

describe("names of labels and annotations", () => {
  it("have the form that Kubernetes asks for", () => {
    const form = /^[a-z0-9.]+\/[a-z0-9-]{1,63}$/;
    expect([...Object.values(labelNames), ...Object.values(annotationNames)].filter((name) => !form.test(name))).toEqual([]);
  });

  it("reserve the variable of the configuration", () => {
    expect(workerConfigVariable.startsWith(reservedVariablePrefix)).toBe(true);
  });
});
