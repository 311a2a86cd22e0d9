package conformance

import (
	"fmt"
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// problems collects the problems of one vector.
type problems []Problem

func (ps *problems) add(at, format string, args ...any) {
	*ps = append(*ps, Problem{At: at, Message: fmt.Sprintf(format, args...)})
}

func (ps *problems) differ(at, message string, expected, got any) {
	*ps = append(*ps, Problem{At: at, Message: message, Expected: expected, Got: got})
}

// compare reports every difference between two plain values, as deep as possible.
func (ps *problems) compare(at string, expected, got any) {
	switch want := expected.(type) {
	case map[string]any:
		if have, ok := got.(map[string]any); ok {
			ps.compareObjects(at, want, have)
			return
		}
	case []any:
		if have, ok := got.([]any); ok && len(want) == len(have) {
			for i := range want {
				ps.compare(at+"/"+strconv.Itoa(i), want[i], have[i])
			}
			return
		}
	}
	if !jsonvalue.Equal(expected, got) {
		ps.differ(at, "differs", expected, got)
	}
}

func (ps *problems) compareObjects(at string, want, have map[string]any) {
	for _, name := range jsonvalue.Keys(want) {
		place := at + "/" + jsonvalue.EscapePointer(name)
		if value, ok := have[name]; ok {
			ps.compare(place, want[name], value)
		} else {
			ps.differ(place, "is missing", want[name], nil)
		}
	}
	for _, name := range jsonvalue.Keys(have) {
		if _, ok := want[name]; !ok {
			ps.differ(at+"/"+jsonvalue.EscapePointer(name), "is not expected", nil, have[name])
		}
	}
}
