package problem

import (
	"maps"
	"slices"
	"strings"
)

// Names returns the names of the library's calls and options in hints: qualified Go names, so that nothing else reads like one, and
// no name begins another. Adapters that offer them under other names translate hints with a Glossary that has them all.
func Names() []string {
	return []string{
		"Runner.Status", "Runner.List", "Runner.Drive", "Runner.Prune", "Runner.Verify", "StartRequest.AllowExisting", "StatusRequest.Wait", "ForkRequest.Anew",
		"ForkRequest.CurrentAgentConfig", "ForkRequest.Again", "ForkRequest.RepeatEffects",
		"ExportOptions.Redact", "DatabaseOptions.Definitions", "Options.MaxVisits", "Options.MaxRecords", "Options.MaxBytes", "Options.MaxPending", "Options.MaxQueued", "Options.Workflows",
		"TreeLimits.Runs", "TreeLimits.Visits", "TreeLimits.Records", "TreeLimits.Bytes", "TreeLimits.Pending",
		"Options.Activities", "Options.Delegates", "Options.NoBackup", "Options.Webhooks",
	}
}

// Glossary holds an adapter's words for Names.
type Glossary map[string]string

// Translate puts the adapter's words into a hint.
func (g Glossary) Translate(hint string) string {
	pairs := make([]string, 0, 2*len(g))
	for _, name := range slices.Sorted(maps.Keys(g)) {
		pairs = append(pairs, name, g[name])
	}
	return strings.NewReplacer(pairs...).Replace(hint)
}
