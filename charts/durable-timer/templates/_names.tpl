{{- /* Not cut to a length: a name that is too long is refused, where a cut one would own other streams than it seems to. */ -}}
{{- define "durable-timer.name" -}}
{{- default .Release.Name .Values.name }}
{{- end }}

{{- define "durable-timer.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
