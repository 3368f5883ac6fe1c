{{/* Names, labels and pod parts that several templates share. */}}

{{- define "nezha.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "nezha.webhook" -}}{{ include "nezha.fullname" . }}-webhook{{- end }}
{{- define "nezha.cache" -}}{{ include "nezha.fullname" . }}-cache{{- end }}
{{- define "nezha.cacheTls" -}}{{ include "nezha.cache" . }}-tls{{- end }}
{{- define "nezha.caSecret" -}}{{ include "nezha.fullname" . }}-ca{{- end }}
{{- define "nezha.secret" -}}{{ include "nezha.webhook" . }}-tls{{- end }}

{{- define "nezha.webhook.account" -}}
{{- default (include "nezha.webhook" .) .Values.webhook.serviceAccount.name -}}
{{- end }}
{{- define "nezha.cache.account" -}}
{{- default (include "nezha.cache" .) .Values.cache.serviceAccount.name -}}
{{- end }}

{{/* Call with (list $ "webhook"|"cache"). */}}
{{- define "nezha.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "nezha.labels" -}}
{{- $root := index . 0 -}}
{{ include "nezha.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: nezha
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Call with (list $ .Values.X.image). */}}
{{- define "nezha.image" -}}
{{- $image := index . 1 -}}
{{ $image.repository }}:{{ default (index . 0).Chart.AppVersion $image.tag }}
{{- end }}

{{/* Pod Security "restricted". */}}
{{- define "nezha.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "nezha.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Annotations and labels of a pod template. Call with (list $ "webhook"|"cache" extra-annotations). */}}
{{- define "nezha.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $part := index $root.Values (index . 1) -}}
{{- $annotations := dict "kubectl.kubernetes.io/default-container" (index . 1) -}}
{{- if $root.Values.metrics.annotations -}}
{{- $annotations = merge $annotations (dict
      "prometheus.io/scrape" "true" "prometheus.io/path" "/metrics"
      "prometheus.io/port" (toString $part.adminPort)) -}}
{{- end -}}
{{- $annotations = mergeOverwrite $annotations (index . 2) $part.podAnnotations -}}
annotations:
  {{- toYaml $annotations | nindent 2 }}
labels:
  {{- include "nezha.labels" (list $root (index . 1)) | nindent 2 }}
  {{- with $part.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Where a pod may run. Call with (list $ "webhook"|"cache"). */}}
{{- define "nezha.placement" -}}
{{- $root := index . 0 -}}
{{- $part := index $root.Values (index . 1) -}}
affinity:
  {{- if $part.affinity }}
  {{- toYaml $part.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "nezha.selector" . | nindent 14 }}
  {{- end }}
{{- range $key := list "nodeSelector" "tolerations" "topologySpreadConstraints" "priorityClassName" }}
{{- with index $part $key }}
{{ $key }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end }}

{{/* The disk tier's size: a share of the volume, in Mi. */}}
{{- define "nezha.cache.tierSize" -}}
{{- $storage := .Values.cache.storage -}}
{{- $unit := dict "Mi" 1 "Gi" 1024 "Ti" 1048576 -}}
{{- $number := regexFind "^[0-9]+" $storage.size | int64 -}}
{{- $mebibytes := mul $number (index $unit (regexFind "[MGT]i$" $storage.size)) -}}
{{- printf "%dMi" (div (mul $mebibytes $storage.tierPercent) 100) -}}
{{- end }}
