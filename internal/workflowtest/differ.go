package workflowtest

import (
	"maps"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxShown is how many differences of a value are listed, maxValue how much of each is shown.
const (
	maxShown = 20
	maxValue = 300
)

// differences compares a value with an expected one. Unless exactly is true, objects may have more fields.
func differences(what string, want, got any, exactly bool) []Difference {
	d := differ{exactly: exactly}
	d.compare(what, want, got)
	return d.found
}

type differ struct {
	exactly bool
	found   []Difference
}

func (d *differ) report(at, want, got string) {
	if len(d.found) < maxShown {
		d.found = append(d.found, Difference{at, want, got})
	}
}

func (d *differ) compare(at string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			d.members(at, want, got)
			return
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				d.compare(at+"."+strconv.Itoa(i), want[i], got[i])
			}
			return
		}
	}
	if !jsonvalue.Equal(want, got) {
		d.report(at, text(want), text(got))
	}
}

func (d *differ) members(at string, want, got map[string]any) {
	for _, name := range jsonvalue.Keys(want) {
		if value, ok := got[name]; ok {
			d.compare(at+"."+name, want[name], value)
		} else {
			d.report(at+"."+name, text(want[name]), "nothing")
		}
	}
	for _, name := range jsonvalue.Keys(got) {
		if _, ok := want[name]; !ok && d.exactly {
			d.report(at+"."+name, "nothing", text(got[name]))
		}
	}
}

func text(v any) string { return problem.Excerpt(string(jsonvalue.Canonical(v)), maxValue) }

func sorted(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
