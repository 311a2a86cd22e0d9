package jsonvalue

import "maps"

// MergePatch returns target with a JSON merge patch (RFC 7396) applied: members of patch replace those of target, objects are
// merged, null removes. Neither argument changes; the result shares values with both.
func MergePatch(target, patch map[string]any) map[string]any {
	merged := maps.Clone(target)
	if merged == nil {
		merged = make(map[string]any, len(patch))
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, name)
		case map[string]any:
			before, _ := merged[name].(map[string]any)
			merged[name] = MergePatch(before, value)
		default:
			merged[name] = value
		}
	}
	return merged
}
