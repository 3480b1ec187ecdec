/** The chart that makes one DurableTimer, as it renders. That the API server takes what it makes is tested in helm-life.api.test.ts. */
import { beforeAll, describe, expect, it } from "vitest";
import { fullSpec, smallestSpec } from "../resource/examples.ts";
import { bringClientTools } from "../cluster/client-tools.ts";
import { refusal, render, type Manifest, type Values } from "./helm.ts";

async function rendered(values: Values, name = "orders"): Promise<readonly Manifest[]> {
  return await render({ chart: "durable-timer", name, namespace: "payments", values });
}

beforeAll(async () => {
  await bringClientTools(() => undefined);
});

describe("the chart durable-timer", () => {
  it("makes one DurableTimer, named like the release, whose spec is the values' as it is", async () => {
    const [timer, ...others] = await rendered({ spec: fullSpec });
    expect(others).toEqual([]);
    expect(timer).toMatchObject({ apiVersion: "durabletimer.dev/v1alpha1", kind: "DurableTimer", metadata: { name: "orders", namespace: "payments" } });
    expect(timer?.["spec"]).toEqual(fullSpec);
  });

  it("keeps sizes in bytes whole, which templates tend to write with an exponent", async () => {
    const spec = { ...smallestSpec, topology: { streams: { ...smallestSpec.topology.streams, state: { maxBytes: 10_737_418_240 } } } };
    const [timer] = await rendered({ spec });
    expect(timer?.["spec"]).toEqual(spec);
  });

  it("takes a name, labels and annotations, and its own labels win", async () => {
    const labels = { team: "payments", "app.kubernetes.io/name": "mine" };
    const [timer] = await rendered({ name: "invoices", labels, annotations: { "durabletimer.dev/paused": "true" }, spec: smallestSpec });
    expect(timer?.metadata).toMatchObject({
      name: "invoices",
      labels: { team: "payments", "app.kubernetes.io/name": "durable-timer", "app.kubernetes.io/instance": "orders" },
      annotations: { "durabletimer.dev/paused": "true" },
    });
  });

  it("is taken as a part of another chart, which hands down its global values", async () => {
    expect(await rendered({ global: { region: "eu" }, spec: smallestSpec })).toHaveLength(1);
  });
});

describe("values that the resource would not take are refused before anything is sent, by name", () => {
  const { servers } = smallestSpec.nats;
  const refused: readonly { readonly name: string; readonly values: Values; readonly field: string; readonly because: string }[] = [
    { name: "nothing", values: {}, field: "'nats'", because: "there is no server to guess" },
    { name: "a spec at the top", values: { ...smallestSpec, spec: smallestSpec }, field: "'nats'", because: "it would be ignored" },
    { name: "a misspelt field", values: { spec: { ...smallestSpec, nats: { servers, acountName: "A" } } }, field: "/spec/nats", because: "the guard would not be there" },
    { name: "a size that is none", values: { spec: { ...smallestSpec, topology: { streams: { ...smallestSpec.topology.streams, state: { maxBytes: "lots" } } } } }, field: "/spec/topology/streams/state/maxBytes", because: "there is no unit" },
    { name: "a missing stream", values: { spec: { ...smallestSpec, topology: { streams: {} } } }, field: "/spec/topology/streams", because: "each size is a decision" },
    { name: "a server with credentials in it", values: { spec: { ...smallestSpec, nats: { servers: ["nats://me:secret@nats.example:4222"] } } }, field: "/spec/nats/servers/0", because: "secrets belong into Secrets" },
    { name: "a text for a number", values: { spec: { ...smallestSpec, workers: { replicas: "3" } } }, field: "/spec/workers/replicas", because: "quotes are easily forgotten in YAML" },
    { name: "a name that is too long", values: { name: "n".repeat(47), spec: smallestSpec }, field: "/name", because: "workers could not be named after it" },
  ];

  it.each(refused)("$name", async ({ values, field, because }) => {
    expect(await refusal(rendered(values)), because).toContain(field);
  });
});
