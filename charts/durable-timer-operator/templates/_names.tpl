{{- define "durable-timer-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Leaves room for suffixes. A release that is named like the chart does not say so twice. */ -}}
{{- define "durable-timer-operator.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "durable-timer-operator.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Names on the whole cluster, where releases of one name in two namespaces would collide. */ -}}
{{- define "durable-timer-operator.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "durable-timer-operator.fullname" .) }}
{{- end }}

{{- define "durable-timer-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "durable-timer-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* Never changes with the version: two operators that disagree about it would both lead. */ -}}
{{- define "durable-timer-operator.leaseName" -}}
{{- include "durable-timer-operator.fullname" . }}
{{- end }}

{{- /* Constant for a release: a Deployment's selector can never be changed. */ -}}
{{- define "durable-timer-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "durable-timer-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "durable-timer-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "durable-timer-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: durable-timer
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The reference of an image value; the tag defaults to what `tag` says. */ -}}
{{- define "durable-timer-operator.imageReference" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .tag .image.tag) }}
{{- end }}
{{- end }}

{{- define "durable-timer-operator.subject" -}}
- kind: ServiceAccount
  name: {{ include "durable-timer-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
