{{/*
The part of kustomize that deploy/ uses, so that this chart installs the files of deploy/ and no copy of them. What it does
not know it refuses. A test compares the result with that of kustomize: tests/deploy/test_chart.py.

A state is a dict whose key "objects" holds the list of objects so far.
*/}}

{{/* Add what a directory builds to .state: the objects of a Kustomization, or what a Component makes of those there. */}}
{{- define "kustomize.add" -}}
{{- $files := .files -}}
{{- $dir := clean .dir -}}
{{- $kustomization := include "kustomize.read" (dict "files" $files "path" (printf "%s/kustomization.yaml" $dir)) | fromYaml -}}
{{- $known := list "apiVersion" "kind" "resources" "components" "configMapGenerator" "generatorOptions" "namespace" "patches" "images" -}}
{{- range $key := keys $kustomization -}}
{{- if not (has $key $known) -}}{{- fail (printf "%s: this chart cannot build the field %s" $dir $key) -}}{{- end -}}
{{- end -}}
{{- $state := .state -}}
{{- if ne $kustomization.kind "Component" -}}{{- $state = dict "objects" list -}}{{- end -}}
{{- range $kustomization.resources -}}
{{- $path := clean (printf "%s/%s" $dir .) -}}
{{- if hasSuffix ".yaml" $path -}}
{{- range splitList "\n---" (include "kustomize.read" (dict "files" $files "path" $path)) -}}
{{- $_ := set $state "objects" (append $state.objects (fromYaml .)) -}}
{{- end -}}
{{- else -}}
{{- include "kustomize.add" (dict "files" $files "dir" $path "state" $state) -}}
{{- end -}}
{{- end -}}
{{- $labels := dig "labels" dict ($kustomization.generatorOptions | default dict) -}}
{{- range $kustomization.configMapGenerator -}}
{{- $data := dict -}}
{{- range .files -}}
{{- $_ := set $data (base .) (include "kustomize.read" (dict "files" $files "path" (clean (printf "%s/%s" $dir .)))) -}}
{{- end -}}
{{- $metadata := dict "name" .name -}}
{{- if .namespace -}}{{- $_ := set $metadata "namespace" .namespace -}}{{- end -}}
{{- if $labels -}}{{- $_ := set $metadata "labels" (deepCopy $labels) -}}{{- end -}}
{{- $made := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $metadata "data" $data -}}
{{- $_ := set $state "objects" (append $state.objects $made) -}}
{{- end -}}
{{- range $kustomization.components -}}
{{- include "kustomize.add" (dict "files" $files "dir" (printf "%s/%s" $dir .) "state" $state) -}}
{{- end -}}
{{- if $kustomization.namespace -}}
{{- range $state.objects -}}{{- $_ := set .metadata "namespace" $kustomization.namespace -}}{{- end -}}
{{- end -}}
{{- range $kustomization.patches -}}
{{- $text := .patch -}}
{{- if .path -}}{{- $text = include "kustomize.read" (dict "files" $files "path" (clean (printf "%s/%s" $dir .path))) -}}{{- end -}}
{{- include "kustomize.patch" (dict "state" $state "target" .target "text" $text) -}}
{{- end -}}
{{- range $image := $kustomization.images -}}
{{- range $state.objects -}}
{{- $template := dig "spec" "template" (dig "spec" "jobTemplate" "spec" "template" dict .) . -}}
{{- range dig "spec" "containers" list $template -}}
{{- if eq (regexReplaceAll "(:[^:/]+)?$" .image "") $image.name -}}
{{- $_ := set . "image" (printf "%s:%s" ($image.newName | default $image.name) $image.newTag) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne $kustomization.kind "Component" -}}
{{- $_ := set .state "objects" (concat .state.objects $state.objects) -}}
{{- end -}}
{{- end -}}

{{/* The text of a file. */}}
{{- define "kustomize.read" -}}
{{- .files.Get .path | default "" | required (printf "this chart has no file %s: make it with `make release`" .path) -}}
{{- end -}}

{{/* Apply one patch, a JSON patch or a strategic merge patch, to the objects of .state that it is for. */}}
{{- define "kustomize.patch" -}}
{{- $state := .state -}}
{{- $target := .target | default dict -}}
{{- range $key := keys $target -}}
{{- if not (has $key (list "kind" "name" "labelSelector")) -}}{{- fail (printf "a patch's target: this chart knows no %s" $key) -}}{{- end -}}
{{- end -}}
{{- $isList := hasPrefix "- " (regexReplaceAll "(?m)^\\s*#.*\n" .text "" | trim) -}}
{{- $patch := dict -}}
{{- if not $isList -}}{{- $patch = fromYaml .text -}}{{- end -}}
{{- if not .target -}}{{- $target = dict "kind" $patch.kind "name" $patch.metadata.name -}}{{- end -}}
{{- $kept := list -}}
{{- range $object := $state.objects -}}
{{- if not (include "kustomize.matches" (dict "object" $object "target" $target)) -}}
{{- $kept = append $kept $object -}}
{{- else if $isList -}}
{{- range fromYamlArray $.text -}}{{- include "kustomize.operation" (dict "object" $object "operation" .) -}}{{- end -}}
{{- $kept = append $kept $object -}}
{{- else if ne (get $patch "$patch") "delete" -}}
{{- include "kustomize.merge" (dict "into" $object "from" $patch) -}}
{{- $kept = append $kept $object -}}
{{- end -}}
{{- end -}}
{{- $_ := set $state "objects" $kept -}}
{{- end -}}

{{/* Text if a target selects an object, else none. */}}
{{- define "kustomize.matches" -}}
{{- $labels := dig "metadata" "labels" dict .object -}}
{{- $isOurs := true -}}
{{- with .target.kind -}}{{- $isOurs = and $isOurs (regexMatch (printf "^(%s)$" .) $.object.kind) -}}{{- end -}}
{{- with .target.name -}}{{- $isOurs = and $isOurs (regexMatch (printf "^(%s)$" .) $.object.metadata.name) -}}{{- end -}}
{{- with .target.labelSelector -}}
{{- $words := regexFindAll "[^\\s(),]+" . -1 -}}
{{- if ne (index $words 1) "in" -}}{{- fail (printf "this chart cannot read the label selector %s" .) -}}{{- end -}}
{{- $isOurs = and $isOurs (has (get $labels (first $words)) (slice $words 2)) -}}
{{- end -}}
{{- if $isOurs -}}yes{{- end -}}
{{- end -}}

{{/* One operation of a JSON patch: add to a map or to the end of a list, replace in either. */}}
{{- define "kustomize.operation" -}}
{{- $operation := .operation -}}
{{- $steps := list -}}
{{- range slice (splitList "/" $operation.path) 1 -}}{{- $steps = append $steps (. | replace "~1" "/" | replace "~0" "~") -}}{{- end -}}
{{- $node := .object -}}
{{- $holder := dict -}}
{{- $key := "" -}}
{{- range initial $steps -}}
{{- if kindIs "slice" $node -}}
{{- $node = index $node (int .) -}}
{{- else -}}
{{- if not (hasKey $node .) -}}{{- fail (printf "%s: nothing there to patch" $operation.path) -}}{{- end -}}
{{- $holder = $node -}}
{{- $key = . -}}
{{- $node = get $node . -}}
{{- end -}}
{{- end -}}
{{- $last := last $steps -}}
{{- $value := deepCopy $operation.value -}}
{{- if not (has $operation.op (list "add" "replace")) -}}
{{- fail (printf "this chart cannot %s %s" $operation.op $operation.path) -}}
{{- else if not (kindIs "slice" $node) -}}
{{- $_ := set $node $last $value -}}
{{- else if and (eq $operation.op "add") (eq $last "-") -}}
{{- $_ := set $holder $key (append $node $value) -}}
{{- else if eq $operation.op "replace" -}}
{{- $i := int $last -}}
{{- $_ := set $holder $key (concat (slice $node 0 $i) (list $value) (slice $node (add1 $i | int))) -}}
{{- else -}}
{{- fail (printf "this chart cannot add at %s" $operation.path) -}}
{{- end -}}
{{- end -}}

{{/* A strategic merge: maps are merged, elements of a list by their mountPath or name, other lists and values replaced. */}}
{{- define "kustomize.merge" -}}
{{- $into := .into -}}
{{- range $key, $value := .from -}}
{{- $old := get $into $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $old) -}}
{{- include "kustomize.merge" (dict "into" $old "from" $value) -}}
{{- else if and (kindIs "slice" $value) (kindIs "slice" $old) (kindIs "map" (first $value)) -}}
{{- $id := ternary "mountPath" "name" (hasKey (first $value) "mountPath") -}}
{{- $new := list -}}
{{- range $element := $value -}}
{{- $known := false -}}
{{- range $old -}}
{{- if eq (get . $id) (get $element $id) -}}
{{- $known = true -}}
{{- include "kustomize.merge" (dict "into" . "from" $element) -}}
{{- end -}}
{{- end -}}
{{- if not $known -}}{{- $new = append $new (deepCopy $element) -}}{{- end -}}
{{- end -}}
{{- $_ := set $into $key (concat $new $old) -}}
{{- else -}}
{{- $_ := set $into $key (deepCopy $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
