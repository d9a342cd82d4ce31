{{/* Change the objects of .state as the values say. All defaults change nothing but what Helm needs. */}}
{{- define "values.apply" -}}
{{- $v := .values -}}
{{- $state := .state -}}
{{- $kept := list -}}
{{- $settings := "" -}}
{{- range $state.objects -}}
{{- if and (eq .kind "ConfigMap") (eq .metadata.name "forecast-scheduler-settings") -}}
{{- if $v.settings -}}
{{- $merged := index .data "settings.yaml" | fromYaml -}}
{{- include "values.merge" (dict "into" $merged "from" $v.settings) -}}
{{- $_ := set .data "settings.yaml" (toYaml $merged) -}}
{{- end -}}
{{- $settings = index .data "settings.yaml" -}}
{{- end -}}
{{- /* What holds data outlives an uninstall: models and history, all Secrets of the namespace, all PodGroups. */ -}}
{{- if has .kind (list "PersistentVolumeClaim" "Namespace" "CustomResourceDefinition") -}}
{{- $annotations := dig "annotations" dict .metadata -}}
{{- $_ := set .metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") $annotations) -}}
{{- end -}}
{{- if and $v.models.storageClassName (eq .kind "PersistentVolumeClaim") -}}
{{- $_ := set .spec "storageClassName" $v.models.storageClassName -}}
{{- end -}}
{{- if or (ne .kind "Namespace") $v.namespace.create -}}{{- $kept = append $kept . -}}{{- end -}}
{{- end -}}
{{- $_ := set $state "objects" $kept -}}
{{- range $part := list "trainer" "scorer" "extender" "schedule" "advisor" "rebalancer" "autoscaler" "webhook" -}}
{{- $values := get $v $part -}}
{{- range $state.objects -}}
{{- if eq .metadata.name (printf "forecast-scheduler-%s" $part) -}}
{{- if eq .kind "ServiceAccount" -}}
{{- $account := . -}}
{{- range $key := list "annotations" "labels" -}}
{{- include "values.add" (dict "object" $account "key" $key "from" (get $values.serviceAccount $key)) -}}
{{- end -}}
{{- else if and (eq .kind "PodDisruptionBudget") (eq (toString $values.replicas) "1") -}}
{{- $_ := set .spec "minAvailable" 0 -}}
{{- else if has .kind (list "Deployment" "CronJob") -}}
{{- include "values.workload" (dict "object" . "values" $values "image" $v.image "settings" $settings) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Change a Deployment or a CronJob as the values of its part say. */}}
{{- define "values.workload" -}}
{{- $values := .values -}}
{{- $spec := .object.spec -}}
{{- $template := dig "template" (dig "jobTemplate" "spec" "template" dict $spec) $spec -}}
{{- $container := first $template.spec.containers -}}
{{- with .image.repository -}}
{{- $_ := set $container "image" (printf "%s:%s" . ($.image.tag | default (splitList ":" $container.image | last))) -}}
{{- end -}}
{{- with .image.pullPolicy -}}{{- $_ := set $container "imagePullPolicy" . -}}{{- end -}}
{{- with .image.pullSecrets -}}
{{- $secrets := list -}}
{{- range . -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- $_ := set $template.spec "imagePullSecrets" $secrets -}}
{{- end -}}
{{- with $values.resources -}}{{- include "values.merge" (dict "into" $container.resources "from" .) -}}{{- end -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" -}}
{{- with get $values $key -}}{{- $_ := set $template.spec $key . -}}{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $values.replicas) -}}{{- $_ := set $spec "replicas" $values.replicas -}}{{- end -}}
{{- with $values.cron -}}{{- $_ := set $spec "schedule" . -}}{{- end -}}
{{- with $values.timeZone -}}{{- $_ := set $spec "timeZone" . -}}{{- end -}}
{{- with $values.profiles -}}
{{- $path := "/spec/template/spec/containers/0/args/2" -}}
{{- include "kustomize.operation" (dict "object" $.object "operation" (dict "op" "replace" "path" $path "value" .)) -}}
{{- end -}}
{{- include "values.add" (dict "object" $template "key" "labels" "from" $values.podLabels) -}}
{{- /* kustomize puts a digest into the ConfigMap's name. Helm deletes the old one at once, so the pods carry the digest here. */ -}}
{{- $annotations := merge (dict "checksum/settings" (sha256sum .settings)) $values.podAnnotations -}}
{{- include "values.add" (dict "object" $template "key" "annotations" "from" $annotations) -}}
{{- end -}}

{{/* Add labels or annotations to those of an object; its own stay. */}}
{{- define "values.add" -}}
{{- with .from -}}
{{- $_ := set $.object.metadata $.key (merge (dict) (dig $.key dict $.object.metadata) .) -}}
{{- end -}}
{{- end -}}

{{/* Merge maps; everything else is replaced, also by false and 0, which sprig's mergeOverwrite would skip. */}}
{{- define "values.merge" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "values.merge" (dict "into" (get $into $key) "from" $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
