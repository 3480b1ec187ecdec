// Parts of the charts that repeat what code says, as Helm templates: the definition of the resource, and the operator's rights.
//
// T1. A name that only an installation knows is asked of the chart's own helpers.
// T2. Text with braces that Helm would read as its own is refused, never escaped by luck.

import { stringify } from "yaml";
import { assert } from "../src/base/assert.ts";
import type { PolicyRule } from "../src/kube/manifests/operator-role.ts";
import { clusterIdentityRules, leaderElectionRules, operatorRules } from "../src/kube/manifests/operator-role.ts";
import { customResourceDefinition } from "../src/resource/crd.ts";

/** The definition of DurableTimer, installed and kept as the chart's values say. */
export function crdTemplate(): string {
  const { metadata, ...definition } = customResourceDefinition();
  const { apiVersion, kind, spec } = definition as { readonly apiVersion: string; readonly kind: string; readonly spec: unknown };
  return `${generatedFrom("src/resource")}
{{- if .Values.crds.enabled }}
apiVersion: ${apiVersion}
kind: ${kind}
metadata:
  name: ${(metadata as { readonly name: string }).name}
  labels:
    {{- include "${CHART}.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
${yaml({ spec })}{{- end }}
`;
}

/** The operator's rights as named templates, for roles of one namespace and of the whole cluster. */
export function rulesTemplate(): string {
  const leaseName = "LEASE_NAME";
  const parts: Readonly<Record<string, readonly PolicyRule[]>> = {
    rules: operatorRules,
    clusterIdentityRules,
    leaderElectionRules: leaderElectionRules(leaseName),
  };
  const definitions = Object.entries(parts).map(([name, rules]) => `{{- define "${CHART}.${name}" -}}\n${yaml(rules)}{{- end }}\n`);
  const text = `${generatedFrom("src/kube/manifests/operator-role.ts")}\n${definitions.join("\n")}`;
  return text.replaceAll(leaseName, `{{ include "${CHART}.leaseName" . }}`);
}

function generatedFrom(source: string): string {
  return `{{- /* Generated from ${source} by \`npm run generate\`; do not edit. */ -}}`;
}

function yaml(value: unknown): string {
  const text = stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, defaultStringType: "PLAIN" });
  assert(!/\{\{|\}\}/.test(text), "text without the braces of templates");
  return text;
}

const CHART = "durable-timer-operator";
