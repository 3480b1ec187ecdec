{{- /* Generated from src/kube/manifests/operator-role.ts by `npm run generate`; do not edit. */ -}}
{{- define "durable-timer-operator.rules" -}}
- apiGroups:
    - durabletimer.dev
  resources:
    - durabletimers
  verbs:
    - get
    - list
    - watch
    - patch
- apiGroups:
    - durabletimer.dev
  resources:
    - durabletimers/status
  verbs:
    - update
- apiGroups:
    - apps
  resources:
    - deployments
  verbs:
    - get
    - list
    - watch
    - create
    - patch
- apiGroups:
    - policy
  resources:
    - poddisruptionbudgets
  verbs:
    - get
    - create
    - patch
- apiGroups:
    - ""
  resources:
    - serviceaccounts
  verbs:
    - get
    - create
    - patch
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
- apiGroups:
    - ""
  resources:
    - pods
  verbs:
    - list
- apiGroups:
    - ""
  resources:
    - namespaces
  verbs:
    - get
- apiGroups:
    - events.k8s.io
  resources:
    - events
  verbs:
    - create
    - patch
{{- end }}

{{- define "durable-timer-operator.clusterIdentityRules" -}}
- apiGroups:
    - ""
  resources:
    - namespaces
  verbs:
    - get
  resourceNames:
    - kube-system
{{- end }}

{{- define "durable-timer-operator.leaderElectionRules" -}}
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - create
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - get
    - update
  resourceNames:
    - {{ include "durable-timer-operator.leaseName" . }}
{{- end }}
