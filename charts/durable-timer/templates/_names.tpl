{{- /* Not cut to a length: a name that is too long is refused, where a cut one would own other streams than it seems to. */ -}}
{{- define "durable-timer.name" -}}
{{- default .Release.Name .Values.name }}
{{- end }}
