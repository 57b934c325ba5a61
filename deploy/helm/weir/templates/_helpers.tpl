{{- define "weir.name" -}}
{{- printf "%s-weir" .Release.Name | replace "weir-weir" "weir" | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "weir.coordinator" -}}
{{- include "weir.name" . }}-coordinator
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Requests equal limits: the pod is Guaranteed, and the static CPU manager gives it processors of its own. */ -}}
{{- define "weir.resources" -}}
{{- $r := dict "cpu" (.cpu | toString) "memory" .memory "ephemeral-storage" "1Gi" -}}
requests: {{ toJson $r }}
limits: {{ toJson $r }}
{{- end }}

{{- /* For weir doctor: a container cannot see what its pod asked for. */ -}}
{{- define "weir.downward" -}}
- name: POD_NODE_IP
  valueFrom: {fieldRef: {fieldPath: status.hostIP}}
{{- range $of := list "requests" "limits" }}
{{- range $what := list "cpu" "memory" }}
- name: POD_{{ upper $of }}_{{ upper $what }}
  valueFrom: {resourceFieldRef: {containerName: weir, resource: {{ $of }}.{{ $what }}{{ if eq $what "cpu" }}, divisor: 1m{{ end }}}}
{{- end }}
{{- end }}
{{- end }}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- with . }}
  add: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "weir.podSecurity" -}}
{{ if . -}}
runAsUser: 0
runAsGroup: 0
{{- else -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
{{- end }}
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "weir.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
restartPolicy: {{ .restart }}
terminationGracePeriodSeconds: {{ .of.terminationGracePeriodSeconds }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .of.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "weir.podMetadata" -}}
annotations: {{ toJson .Values.podAnnotations }}
labels:
  {{- include "weir.labels" . | nindent 2 }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
