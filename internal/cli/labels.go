package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// registerLabels adds the flag --label.
func registerLabels(flags *pflag.FlagSet, labels *[]string, usage string) {
	flags.StringArrayVar(labels, "label", nil, usage)
}

// parseLabels reads labels of the form KEY=VALUE, or KEY for one without a value.
func parseLabels(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if _, twice := labels[name]; twice || name == "" {
			return nil, usage("--label: %q has no name, or one that was given before", text).WithHint("Write KEY=VALUE, each key once.")
		}
		labels[name] = value
	}
	return labels, nil
}
