package history_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestCaptionsAreShortLines(t *testing.T) {
	t.Parallel()
	most := map[string]string{}
	for i := range 16 {
		most[fmt.Sprintf("label %d", i)] = strings.Repeat("é", 200)
	}
	for _, c := range []struct {
		title  string
		labels map[string]string
	}{{}, {strings.Repeat("é", 200), most}, {"Refund 17: \"now\"", map[string]string{strings.Repeat("n", 64): ""}}} {
		if err := history.CheckCaption(c.title, c.labels); err != nil {
			t.Errorf("%q, %v: %v", c.title, c.labels, err)
		}
	}
	most["one more"] = ""
	for _, c := range []struct {
		title  string
		labels map[string]string
		says   string
	}{
		{strings.Repeat("é", 201), nil, "the title has 201 characters"},
		{"two\nlines", nil, "the title contains"},
		{"\xff", nil, "the title contains"},
		{"", most, "at most 16 labels"},
		{"", map[string]string{"": "x"}, `invalid name ""`},
		{"", map[string]string{"a=b": "x"}, `invalid name "a=b"`},
		{"", map[string]string{strings.Repeat("n", 65): "x"}, "has 65 characters"},
		{"", map[string]string{"n": strings.Repeat("v", 201)}, `the label "n" has 201`},
		{"", map[string]string{"n": "\u202e"}, `the label "n" contains`},
	} {
		if err := history.CheckCaption(c.title, c.labels); !errors.Is(err, problem.ValidationError) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %v: %v, want %q", c.title, c.labels, err, c.says)
		}
	}
}
