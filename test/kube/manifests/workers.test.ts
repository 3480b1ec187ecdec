import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { annotationNames } from "../../../src/resource/names.ts";
import { parseSpec } from "../../../src/resource/validate.ts";
import { renderWorkers, workerImageOf, type WorkerObjects } from "../../../src/kube/manifests/workers.ts";
import type { DesiredWorkers } from "../../../src/operator/plan/observed.ts";
import { systemSha256 as sha256 } from "../../../src/system/sha256.ts";
import { fullSpec, smallestSpec } from "../../resource/examples.ts";

const defaultImage = "registry.example/durable-timer:1";

function desired(spec: unknown): DesiredWorkers {
  const parsed = parseSpec(spec);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return { key: { namespace: "payments", name: "orders" }, uid: "0d3e", ownerId: "c1/payments/orders", spec: parsed.spec };
}

function render(spec: unknown, image = defaultImage): WorkerObjects {
  return renderWorkers(desired(spec), { defaultImage: image, sha256 });
}

function withWorkers(workers: object): object {
  return { ...smallestSpec, workers };
}

/** As the three documents of one file. */
function yamlOf(objects: WorkerObjects): string {
  const documents = [objects.serviceAccount, objects.podDisruptionBudget, objects.deployment];
  return documents.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false })).join("---\n");
}

describe("the whole", () => {
  test("for the smallest spec is the reviewed text", async () => {
    await expect(yamlOf(render(smallestSpec))).toMatchFileSnapshot("../../golden/workers-smallest.yaml");
  });

  test("for the full spec is the reviewed text", async () => {
    await expect(yamlOf(render(fullSpec))).toMatchFileSnapshot("../../golden/workers-full.yaml");
  });

  test("is the same text each time", () => {
    expect(yamlOf(render(fullSpec))).toBe(yamlOf(render(structuredClone(fullSpec))));
  });
});

describe("what a rollout depends on", () => {
  const hashOf = (objects: WorkerObjects): string | undefined => objects.deployment.metadata?.annotations?.[annotationNames.templateHash];

  const same = [
    { name: "the number of workers", spec: withWorkers({ replicas: 7 }), because: "scaling restarts nobody" },
    { name: "an emergency stop of admission", spec: { ...smallestSpec, admission: { state: "Closed" } }, because: "it pauses a consumer; the workers go on" },
    { name: "paused resumes", spec: { ...smallestSpec, resume: { state: "Paused" } }, because: "it is the consumer's business" },
    { name: "sizes of streams", spec: { ...smallestSpec, topology: { streams: { ...smallestSpec.topology.streams, state: { maxBytes: "20Gi" } } } }, because: "workers read limits from the broker" },
  ];
  test.each(same)("$name leaves the template as it is", ({ spec, because }) => {
    expect(render(spec).deployment.spec?.template, because).toEqual(render(smallestSpec).deployment.spec?.template);
    expect(hashOf(render(spec))).toBe(hashOf(render(smallestSpec)));
  });

  const others = [
    { name: "the image", objects: render(smallestSpec, "registry.example/durable-timer:2") },
    { name: "the worker's configuration", objects: render({ ...smallestSpec, sweep: { intervalSeconds: 60 } }) },
    { name: "a label of the pods", objects: render(withWorkers({ podTemplate: { metadata: { labels: { team: "x" } } } })) },
  ];
  test.each(others)("$name changes the template and its hash", ({ objects }) => {
    expect(hashOf(objects)).not.toBe(hashOf(render(smallestSpec)));
  });
});

describe("the image", () => {
  const rows = [
    { image: undefined, want: defaultImage, because: "the operator was installed with one" },
    { image: "", want: defaultImage, because: "templates render what was not given as empty text" },
    { image: "mine:1", want: "mine:1", because: "the resource decides" },
  ];
  test.each(rows)("$image means $want", ({ image, want, because }) => {
    expect(workerImageOf(desired(withWorkers(image === undefined ? {} : { image })), defaultImage), because).toBe(want);
  });
});

test("nothing secret is rendered, only names of Secrets", () => {
  const text = yamlOf(render(fullSpec));
  expect(text).toContain("name: dt-worker");
  expect(text, "the operator's identity has more rights than a worker needs").not.toContain("dt-operator");
});
