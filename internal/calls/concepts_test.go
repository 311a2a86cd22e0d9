package calls_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/calls"
)

// TestThePictureOfARun: the states in the picture of docs/concepts.md are the phases of runs, and all of them.
func TestThePictureOfARun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	picture := regexp.MustCompile("(?s)\n```mermaid\n(.*?)```\n").FindSubmatch(page)
	if picture == nil {
		t.Fatal("docs/concepts.md has no picture")
	}
	var states []string
	for line := range strings.Lines(string(picture[1])) {
		arrow, _, _ := strings.Cut(line, ":")
		for _, state := range strings.Split(arrow, "-->") {
			if state = strings.TrimSpace(state); regexp.MustCompile(`^[a-z_]+$`).MatchString(state) && !slices.Contains(states, state) {
				states = append(states, state)
			}
		}
	}
	phases := slices.Sorted(slices.Values(calls.Phases))
	slices.Sort(states)
	if !slices.Equal(states, phases) {
		t.Errorf("the picture has %v, phases are %v", states, phases)
	}
}
