{{- define "clusterrun.name" -}}
{{- if contains "clusterrun" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-clusterrun{{ end }}
{{- end }}

{{- define "clusterrun.selector" -}}
app.kubernetes.io/name: clusterrun
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "clusterrun.labels" -}}
{{ include "clusterrun.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "clusterrun.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "clusterrun.secret" -}}
{{- if .Values.temporal.existingSecret -}}
{{ .Values.temporal.existingSecret }}
{{- else -}}
{{ include "clusterrun.name" . }}-temporal
{{- end }}
{{- end }}

{{- define "clusterrun.annotations" -}}
{{- if .Values.metrics.annotations }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .Values.metrics.port | quote }}
{{- end }}
{{- end }}
