package config

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// setting is a value with its source, so that an error names the flag or variable that the user wrote.
type setting struct {
	value string
	// from is "--store" or "WORKFLOW_ENGINE_STORE"; "" for a default.
	from string
}

// choose finds the member of known that equals the setting, letters in any case.
func choose[T ~string](s setting, known ...T) (T, error) {
	for _, k := range known {
		if strings.EqualFold(s.value, string(k)) {
			return k, nil
		}
	}
	return "", refuse(s, "Write %s.", problem.OrList(known))
}

// refuse says that a setting is not understood.
func refuse(s setting, hint string, args ...any) *problem.Error {
	return problem.New(problem.UsageError, "%s: %q is not understood", s.from, s.value).WithHint(hint, args...)
}

// ineffective returns a warning for every variable that has the project's prefix and no effect: a misspelt name, or a
// setting that only another engine of the protocol supports.
func ineffective(variables []string) []string {
	var warnings []string
	for _, entry := range variables {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envname.Prefix) || slices.Contains(envname.Known, name) || strings.TrimSpace(value) == "" {
			continue
		}
		reason := "is not known"
		if slices.Contains(envname.Unsupported, name) {
			reason = "is not supported by this engine"
		}
		warnings = append(warnings, "environment variable "+name+" "+reason+" and has no effect")
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}
