/**
 * The CustomResourceDefinition of DurableTimer, made from the schemas in spec.ts and status.ts, the rules in rules.ts and
 * the names in names.ts. Nothing in it is written by hand a second time.
 */
import { z } from "zod";
import { assert } from "../base/assert.ts";
import { apiGroup, apiVersionName, crdName, resourceNames } from "./names.ts";
import { changeRules, nameRule, sizeRule, specRules } from "./rules.ts";
import { specSchema } from "./spec.ts";
import { statusSchema } from "./status.ts";
import { structuralProblems, toStructural, type SchemaNode } from "./structural.ts";

/** The CRD as a plain object, ready to be written as YAML or to be applied. */
export function customResourceDefinition(): SchemaNode {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: crdName },
    spec: {
      group: apiGroup,
      names: resourceNames,
      scope: "Namespaced",
      versions: [
        {
          name: apiVersionName,
          served: true,
          storage: true,
          additionalPrinterColumns: printerColumns,
          subresources: { status: {}, scale: scalePaths },
          schema: { openAPIV3Schema: resourceSchema() },
        },
      ],
    },
  };
}

/** The schema of the whole resource. */
export function resourceSchema(): SchemaNode {
  const schema = {
    description: "DurableTimer owns the durable timers of one NATS account: it provisions streams and consumers on JetStream, and runs the workers that wake timers and publish their resumes.",
    type: "object",
    "x-kubernetes-validations": [{ rule: nameRule.cel, message: nameRule.problem, fieldPath: ".metadata.name" }],
    required: ["spec"],
    properties: {
      apiVersion: { description: "Version of the schema of this object.", type: "string", maxLength: 253 },
      kind: { description: "Kind of this object: DurableTimer.", type: "string", maxLength: 63 },
      // The API server knows it: of metadata a CRD may restrict the name, and can say nothing else.
      metadata: { type: "object", properties: { name: { type: "string", maxLength: 253 } } },
      spec: withRules(structuralOf(specSchema.meta({ description: "What is wanted." }))),
      status: structuralOf(statusSchema.prefault({}).meta({ description: "What is there; written by the operator." })),
    },
  };
  const problems = [...structuralProblems(schema.properties.spec, "spec"), ...structuralProblems(schema.properties.status, "status")];
  assert(problems.length === 0, `a structural schema; ${problems.join("; ")}`);
  return schema;
}

function structuralOf(schema: z.ZodType): SchemaNode {
  return toStructural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input", reused: "inline", unrepresentable: "throw" }));
}

type Validation = { readonly rule: string; readonly message: string; readonly fieldPath?: string };

function withRules(spec: SchemaNode): SchemaNode {
  const rules = [...specRules, ...changeRules].map(({ at, field, cel, problem }) => {
    const validation: Validation = { rule: cel, message: problem, ...(field === undefined ? {} : { fieldPath: `.${field}` }) };
    return { path: at.split("."), validation };
  });
  const sizes = Object.keys(specSchema.shape.topology.shape.streams.shape).map((stream) => ({
    path: ["topology", "streams", stream, "maxBytes"],
    validation: { rule: sizeRule.cel, message: sizeRule.problem },
  }));
  return [...rules, ...sizes].reduce((schema, { path, validation }) => withRule(schema, path, validation), spec);
}

function withRule(node: SchemaNode, path: readonly string[], validation: Validation): SchemaNode {
  const [name, ...rest] = path;
  if (name === undefined) {
    const present = (node["x-kubernetes-validations"] ?? []) as readonly Validation[];
    return { ...node, "x-kubernetes-validations": [...present, validation] };
  }
  const properties = (node["properties"] ?? {}) as Readonly<Record<string, SchemaNode>>;
  const child = properties[name];
  assert(child !== undefined, `a field ${name} for the rule "${validation.message}"`);
  return { ...node, properties: { ...properties, [name]: withRule(child, rest, validation) } };
}

const condition = (type: string, part: "status" | "reason"): string => `.status.conditions[?(@.type=="${type}")].${part}`;

const printerColumns: readonly SchemaNode[] = [
  { name: "Ready", type: "string", description: "Whether timers are accepted, woken and resumed.", jsonPath: condition("Ready", "status") },
  { name: "Reason", type: "string", description: "Why.", jsonPath: condition("Ready", "reason") },
  { name: "Workers", type: "string", description: "Ready and wanted workers.", jsonPath: ".status.workers.summary" },
  { name: "Admission", type: "string", description: "Whether new timers are accepted.", jsonPath: condition("AdmissionOpen", "status") },
  { name: "Full%", type: "integer", description: "How full the fullest stream is.", jsonPath: ".status.capacity.worstPercent" },
  { name: "Resume", type: "string", description: "Whether resumes are delivered.", priority: 1, jsonPath: condition("ResumeOpen", "reason") },
  { name: "NATS", type: "string", description: "Version of the NATS server.", priority: 1, jsonPath: ".status.broker.version" },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
];

const scalePaths = {
  specReplicasPath: ".spec.workers.replicas",
  statusReplicasPath: ".status.workers.replicas",
  labelSelectorPath: ".status.workers.selector",
} as const;
